import assert from "node:assert/strict";
import { test } from "node:test";
import { podStatusWord } from "../server/pod-words.ts";
import { addressLines, containerText, notReadyLines, podTable } from "./pod-text.ts";
import { Painter } from "./terminal.ts";
import { containerView, podView } from "../../test/support/pod-views.ts";

const plain = new Painter(false);

test("a pod's status word is its container's waiting reason", () => {
  assert.equal(podStatusWord(podView({})), "Running");
  assert.equal(podStatusWord(podView({ state: "terminating" })), "Terminating");
  assert.equal(podStatusWord(podView({ phase: "Failed", reason: "Evicted" })), "Evicted");
  const waiting = containerView({ state: "waiting", reason: "CrashLoopBackOff" });
  assert.equal(podStatusWord(podView({ containers: [containerView({}), waiting] })), "CrashLoopBackOff");
  const ended = containerView({ state: "terminated", reason: "", exitCode: 3 });
  assert.equal(podStatusWord(podView({ phase: "Failed", containers: [ended] })), "ExitCode:3");
});

test("a rejected pod shows why it was rejected, not its containers' waiting reasons", () => {
  const containers = [containerView({ state: "waiting", ready: false, reason: "ContainerCreating" })];
  const rejected = podView({ phase: "Failed", reason: "NodePorts", message: "host port is taken", containers });
  assert.equal(podStatusWord(rejected), "NodePorts");
  assert.deepEqual(notReadyLines(rejected), ["NodePorts: host port is taken"]);
});

test("an evicted pod shows that, whatever its containers ended with", () => {
  const completed = containerView({ state: "terminated", reason: "Completed", exitCode: 0, ready: false });
  const evicted = podView({ phase: "Failed", reason: "Evicted", ready: false, containers: [completed] });
  assert.equal(podStatusWord(evicted), "Evicted");
  assert.equal(podStatusWord({ ...evicted, containers: [] }), "Evicted");
  assert.equal(podStatusWord({ ...evicted, phase: "Succeeded" }), "Evicted");
  assert.equal(podStatusWord({ ...evicted, phase: "Succeeded", reason: "" }), "Completed");
});

test("an initializing pod shows its progress, and what delays it", () => {
  const init = { ...containerView({ name: "i", ready: false }), sidecar: false, done: false };
  const done = { ...init, state: "terminated" as const, exitCode: 0, reason: "Completed", done: true };
  const word = (...initContainers: (typeof init)[]): string =>
    podStatusWord(podView({ phase: "Pending", ready: false, initContainers }));
  assert.equal(word(done, init), "Init:1/2");
  assert.equal(word({ ...init, state: "waiting", reason: "PodInitializing" }), "Init:0/1");
  assert.equal(word({ ...init, state: "waiting", reason: "CrashLoopBackOff" }), "Init:CrashLoopBackOff");
  assert.equal(podStatusWord(podView({ initContainers: [done] })), "Running");
});

test("a pod with one completed container is still running", () => {
  const completed = containerView({ state: "terminated", reason: "Completed", exitCode: 0, ready: false });
  const containers = [completed, containerView({})];
  assert.equal(podStatusWord(podView({ ready: false, containers })), "NotReady");
  assert.equal(podStatusWord(podView({ ready: true, containers })), "Running");
});

test("the table shows readiness, restarts, age and address", () => {
  const container = containerView({ restartCount: 2, startedAt: 940_000 });
  const lines = podTable([podView({ containers: [container], createdAt: 400_000 })], false, 1_000_000, plain);
  assert.deepEqual(lines, [
    "NAMESPACE   NAME   READY   STATUS    RESTARTS      AGE   IP",
    "default     web    1/1     Running   2 (60s ago)   10m   10.88.0.2",
  ]);
});

test("the wide table adds ports, source, uid and images", () => {
  const [, line] = podTable([podView({})], true, 1_000_000, plain);
  assert.match(line ?? "", /8080→80\/tcp +run +uid-web +podwright.local\/demo:1$/);
});

test("the address of a host port can be opened in a browser", () => {
  const [first, second, third] = addressLines(podView({}), plain, "/var/lib/podwright");
  assert.equal(first, "address   http://127.0.0.1:8080   host port 8080 → container port 80");
  assert.equal(second, "pod IP    10.88.0.2");
  assert.equal(third, "logs      podwright logs -f web   in /var/log/pods/default_web_uid-web");
  const hostPorts = [{ hostIP: "fd00::1", hostPort: 53, containerPort: 53, protocol: "UDP" }];
  assert.match(
    addressLines(podView({ hostPorts, namespace: "tools" }), plain, "/var/lib/podwright").join("\n"),
    /\[fd00::1\]:53\/udp[^]*logs -f tools\/web/,
  );
});

test("the reasons for an unready pod have each unready container, with control characters escaped", () => {
  const waiting = containerView({
    name: "b",
    state: "waiting",
    ready: false,
    reason: "ErrImagePull",
    message: "no\u001b[2J such\nimage",
  });
  assert.deepEqual(notReadyLines(podView({ containers: [containerView({}), waiting] })), [
    String.raw`container b is waiting: ErrImagePull: no\u001b[2J such image`,
  ]);
  assert.equal(containerText(containerView({ ready: false })), "runs but is not ready");
});

test("a long termination message is shown with its beginning and end", () => {
  const message = `begin${"x".repeat(4000)}end`;
  const text = containerText(containerView({ state: "terminated", exitCode: 1, reason: "Error", message }));
  assert.match(text, /begin.* … .*end/);
  assert.ok(text.length < 400);
});
