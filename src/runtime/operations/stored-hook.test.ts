import assert from "node:assert/strict";
import { test } from "node:test";
import { Annotation } from "../config/labels.ts";
import { storedHook } from "./stored-hook.ts";

const hookOf = (preStop: string) => storedHook({ [Annotation.preStopHandler]: preStop }).preStop;

test("a hook is read back from a container's annotations", () => {
  assert.deepEqual(hookOf(`{"exec":{"command":["sh","-c","a"]}}`), { exec: { command: ["sh", "-c", "a"] } });
  assert.deepEqual(hookOf(`{"sleep":{"seconds":0}}`), { sleep: { seconds: 0 } });
  const httpGet = {
    path: "/x",
    port: "web",
    host: "h",
    scheme: "HTTPS",
    httpHeaders: [{ name: "A", value: "b" }],
  };
  assert.deepEqual(hookOf(JSON.stringify({ httpGet })), { httpGet });
  assert.deepEqual(hookOf(`{"httpGet":{"port":80}}`), { httpGet: { port: 80 } });
  const { ports } = storedHook({ [Annotation.ports]: `[{"name":"web","containerPort":80},{"x":1}]` });
  assert.deepEqual(ports, [{ name: "web", containerPort: 80 }]);
});

test("anything else counts as no hook", () => {
  assert.deepEqual(storedHook({}), { preStop: undefined, ports: [] });
  for (const text of [
    "",
    "{",
    "null",
    "[]",
    "7",
    "{}",
    `{"tcpSocket":{"port":1}}`,
    `{"exec":{}}`,
    `{"exec":{"command":"a"}}`,
    `{"exec":{"command":[1]}}`,
    `{"sleep":{"seconds":"1"}}`,
    `{"httpGet":{"port":{}}}`,
  ]) {
    assert.equal(hookOf(text), undefined, text);
  }
});
