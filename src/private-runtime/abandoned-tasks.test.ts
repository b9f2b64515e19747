import assert from "node:assert/strict";
import { test } from "node:test";
import { type Cri, CriError } from "../ports/cri.ts";
import type { RpcCode } from "../ports/rpc.ts";
import type { Processes } from "../ports/processes.ts";
import { silentLog } from "../sim/machine.ts";
import { removingAbandonedTasks } from "./abandoned-tasks.ts";

/** A runtime that refuses so often to remove a container, and a ctr. */
function refusing(times: number, code: RpcCode, words: string, ctrFails = false) {
  const calls: string[] = [];
  let refusals = times;
  const removeContainer = async (): Promise<object> => {
    calls.push("remove");
    if (refusals-- > 0) throw new CriError(code, "removeContainer", words);
    return {};
  };
  const run: Processes["run"] = async (_program, arguments_) => {
    calls.push(`ctr ${arguments_.slice(4).join(" ")}`);
    if (ctrFails) throw new Error("cannot run ctr");
    return { exitCode: 0, signal: undefined, stdout: "", stderr: "" };
  };
  const cri = { runtime: { removeContainer }, images: {} } as unknown as Cri;
  const deps = { processes: { run }, log: silentLog, ctr: "/usr/bin/ctr", socket: "/run/containerd.sock" };
  return { calls, cri: removingAbandonedTasks(cri, deps) };
}

const running = "failed to delete containerd container: cannot delete running task c1: failed precondition";

test("a container whose interrupted start left a task is removed after its task", async () => {
  const { calls, cri } = refusing(1, "FailedPrecondition", running);
  await cri.runtime.removeContainer({ containerId: "c1" });
  assert.deepEqual(calls, ["remove", "ctr tasks rm --force c1", "remove"]);
});

test("no task is removed for any other reason, or without need", async () => {
  const other = refusing(1, "Unknown", "container is in starting state, can't be removed");
  await assert.rejects(other.cri.runtime.removeContainer({ containerId: "c1" }), CriError);
  const none = refusing(0, "Unknown", "");
  await none.cri.runtime.removeContainer({ containerId: "c1" });
  assert.deepEqual([other.calls, none.calls], [["remove"], ["remove"]]);
});

test("if the task cannot be removed, the runtime's own error is reported", async () => {
  const { cri } = refusing(1, "FailedPrecondition", running, true);
  await assert.rejects(cri.runtime.removeContainer({ containerId: "c1" }), /cannot delete running task/);
});
