import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { EngineClient } from "../../src/cli/engine-client.ts";
import { unixTransport } from "../../src/linux/http/unix-client.ts";
import { DEFAULT_STATE_DIRECTORY } from "../../src/private-runtime/layout.ts";
import { engineAnswers, until } from "../support/podwright.ts";
import {
  cgroupIsThere,
  cgroupValues,
  containerScope,
  machineState,
  podSlice,
  podThatIs,
  podwright,
  podWithResources,
  prepareLayout,
  run,
} from "./machine.ts";

/** A pod with these limits, and half of them as requests. */
function sized(milliCpu: number, mebibytes: number): object {
  const amounts = (share: number): object => ({ cpu: `${milliCpu * share}m`, memory: `${mebibytes * share}Mi` });
  return podWithResources("sized", { requests: amounts(0.5), limits: amounts(1) });
}

const file = join(mkdtempSync(join(tmpdir(), "podwright-vm-")), "pod.json");

test("a pod of podwright run is resized in place, up and down, in the kernel and in systemd, and keeps running", async () => {
  const layout = await prepareLayout(DEFAULT_STATE_DIRECTORY);
  const client = new EngineClient(unixTransport(layout.engineSocket), layout.stateDirectory);
  const apply = (milliCpu: number, mebibytes: number): void => {
    writeFileSync(file, JSON.stringify(sized(milliCpu, mebibytes)));
    run(podwright, ["run", "--detach", "--runtime-endpoint", layout.containerd.endpoint, file]);
  };
  apply(400, 64);
  const pod = await podThatIs(client, "sized", ({ ready }) => ready, machineState);
  const slice = podSlice(pod, ["podwright", "kubepods", "burstable"]);
  const values = (): object => ({
    pod: cgroupValues(slice, "cpu.weight", "cpu.max", "memory.max"),
    container: cgroupValues(`${slice}/${containerScope(pod)}`, "cpu.max", "memory.max"),
  });
  for (const { milliCpu, mebibytes, weight } of [
    { milliCpu: 400, mebibytes: 64, weight: 8 },
    { milliCpu: 1000, mebibytes: 128, weight: 20 },
    { milliCpu: 200, mebibytes: 48, weight: 4 },
  ]) {
    apply(milliCpu, mebibytes);
    const limits = { "cpu.max": `${milliCpu * 100} 100000`, "memory.max": `${mebibytes * 2 ** 20}` };
    const wanted = { pod: { "cpu.weight": `${weight}`, ...limits }, container: limits };
    const isSo = async (): Promise<boolean> => JSON.stringify(values()) === JSON.stringify(wanted);
    await until(() => `${JSON.stringify(wanted)} instead of ${JSON.stringify(values())}`, isSo);
    run("systemctl", ["daemon-reload"]);
    assert.deepEqual(values(), wanted, "systemd has been told");
    console.log(`${milliCpu}m, ${mebibytes}Mi: ${JSON.stringify(values())}`);
  }
  const resized = await podThatIs(client, "sized", ({ ready }) => ready, machineState);
  const lives = [pod, resized].map(({ uid, containers: [app] }) => [uid, app?.id, app?.restartCount]);
  assert.deepEqual(lives[1], lives[0]);

  run(podwright, ["stop", "--grace", "0", "sized"]);
  await until("the engine to end by itself", async () => !(await engineAnswers(client)));
  await until("its slices to go", async () => !cgroupIsThere("podwright.slice"));
});
