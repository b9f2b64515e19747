import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { open, readFile } from "node:fs/promises";
import { goKubelet } from "./control-plane.ts";
import { limitMs, type Member } from "./member.ts";
import { sleep, until } from "./podwright.ts";

/** The same configuration, root directory, runtime and credentials as podwright's. */
export async function startGoKubelet({ flags: shared, node: { podwright } }: Member): Promise<ChildProcess> {
  const log = await open(podwright.path("go-kubelet.log"), "a");
  const flags = [
    ...["--config", podwright.path("kubelet.yaml"), "--root-dir", podwright.layout.kubeletRoot],
    ...["--hostname-override", "node1", "--cert-dir", podwright.path("pki"), ...shared],
  ];
  try {
    return spawn(goKubelet, flags, { stdio: ["ignore", log.fd, log.fd] });
  } finally {
    await log.close();
  }
}

export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}

/** Every container of the node with its restarts, and since when its pod has been Ready. */
export async function identity({ kubectl }: Member): Promise<readonly string[]> {
  const each =
    "{range .items[*]}{.metadata.name} {.status.containerStatuses[*].containerID} " +
    "{.status.containerStatuses[*].restartCount} " +
    '{.status.conditions[?(@.type=="Ready")].lastTransitionTime}{"\\n"}{end}';
  return (await kubectl.succeed("get", "pods", "-o", `jsonpath=${each}`)).trim().split("\n").toSorted();
}

export function withoutTimes(each: string): string {
  return each.slice(0, each.lastIndexOf(" "));
}

/** How long the node agent whose turn it is has for a mistake. */
export const watchMs = 25_000;

async function leases({ kubectl }: Member): Promise<string> {
  return kubectl.succeed("get", "lease", "node1", "-n", "kube-node-lease", "-o", "jsonpath={.spec.renewTime}");
}

/** Waits until the present kubelet manages the node, then for a while. */
export async function watch(member: Member): Promise<void> {
  const renewed = await leases(member);
  await until("the lease to be renewed", async () => (await leases(member)) !== renewed, limitMs);
  await sleep(watchMs);
}

/** The end of the Go kubelet's log. */
export async function goLog({ node: { podwright } }: Member): Promise<string> {
  return (await readFile(podwright.path("go-kubelet.log"), "utf8")).slice(-8000);
}
