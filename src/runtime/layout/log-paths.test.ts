import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../../test/support/pods.ts";
import { recordedPods, vectorText } from "../../../test/support/vectors.ts";
import {
  containerIdOfLogLink,
  containerLogLinkName,
  containerLogPath,
  podLogDirectory,
  podUidOfLogDirectory,
  restartCountOfLog,
} from "./log-paths.ts";

const links = vectorText("log-links.txt")
  .trim()
  .split("\n")
  .map((line) => line.split(" -> ") as [string, string]);

for (const [link, target] of links) {
  test(`the link to ${target} is the Go kubelet's`, () => {
    const pod = recordedPods().find(({ metadata }) => target.includes(metadata.uid));
    assert.ok(pod);
    const [containerName = "", file = ""] = target.split("/").slice(-2);
    const id = containerIdOfLogLink(link) ?? "";
    assert.equal(containerLogLinkName(pod.metadata, containerName, id), link);
    const logPath = containerLogPath(containerName, restartCountOfLog(file) ?? -1);
    assert.equal(`${podLogDirectory("/var/log/pods", pod.metadata)}/${logPath}`, target);
  });
}

test("a link's name is truncated to the file system's limit", () => {
  const name = containerLogLinkName({ name: "p".repeat(253), namespace: "n".repeat(63) }, "c", "a".repeat(64));
  assert.equal(name.length, 255);
  assert.ok(name.endsWith("p.log"));
  assert.equal(containerIdOfLogLink(name), undefined);
});

test("names of directories and files identify their owners", () => {
  assert.equal(podUidOfLogDirectory("ns_p_u-1"), "u-1");
  assert.equal(podUidOfLogDirectory("u-1"), "u-1");
  assert.equal(podLogDirectory("/var/log/pods", podWith({}).metadata), "/var/log/pods/ns_p_u");
  assert.equal(restartCountOfLog("12.log"), 12);
  assert.equal(restartCountOfLog("3.log.20260102-150405.gz"), 3);
  assert.equal(restartCountOfLog("x.log"), undefined);
});
