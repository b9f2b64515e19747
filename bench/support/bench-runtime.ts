import { dirname } from "node:path";
import { ensurePrivateRuntime } from "../../src/private-runtime/containerd.ts";
import type { RuntimeLayout } from "../../src/private-runtime/layout.ts";
import { preflight, requireReady } from "../../src/private-runtime/preflight/preflight.ts";
import { stopPrivateRuntime } from "../../src/private-runtime/stop.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import { usualWays } from "../../src/sim/runtime-ways.ts";
import { machine } from "../../test/support/machine.ts";
import { startRuntimeServer } from "../../test/support/runtime-server.ts";
import type { BenchOptions } from "./options.ts";

export interface BenchRuntime {
  /** `unix://…` */
  readonly endpoint: string;
  /** Rejects while it still has pods. */
  stop(): Promise<void>;
}

export type StartRuntime = (layout: RuntimeLayout, options: BenchOptions) => Promise<BenchRuntime>;

export async function startPrivateContainerd(layout: RuntimeLayout, options: BenchOptions): Promise<BenchRuntime> {
  const facts = requireReady(await preflight({ ...machine, layout, searchPath: [dirname(options.containerd)] }));
  await ensurePrivateRuntime(machine, layout, facts);
  return {
    endpoint: layout.containerd.endpoint,
    stop: async () => {
      const programs = { busybox: "/bin/busybox", iptables: "/usr/sbin/iptables" };
      const { stopped } = await stopPrivateRuntime(machine, layout, programs);
      if (!stopped) throw new Error(`containerd still has pods; its state is in ${layout.stateDirectory}`);
    },
  };
}

/** The simulated runtime in this process, behind a real socket: thousands of containers cost the machine nothing. */
export async function startTestRuntime(): Promise<BenchRuntime> {
  const server = await startRuntimeServer(usualWays);
  server.world.images.add(DEMO_IMAGE);
  return { endpoint: server.wire.endpoint, stop: async () => await server[Symbol.asyncDispose]() };
}
