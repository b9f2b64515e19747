import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { nodeApiDeps, nodeRequest } from "../../test/support/node-api.ts";
import { nodeApi } from "./routes.ts";

async function ask(path: string, accept?: string): Promise<{ readonly status: number; readonly text: string }> {
  const headers = accept === undefined ? {} : { accept };
  const answer = await nodeApi(await nodeApiDeps())(nodeRequest("GET", path, { headers }));
  assert.ok("status" in answer);
  assert.ok(typeof answer.body === "string");
  return { status: answer.status, text: `${answer.contentType} ${answer.body}` };
}

test("people get text, with flexible content negotiation", async () => {
  for (const accept of [undefined, "", "*/*", "application/json, */*", "text/plain;q=0.9"]) {
    const { status, text } = await ask("/statusz", accept);
    assert.equal(status, 200, String(accept));
    assert.match(
      text,
      /^text\/plain; charset=utf-8 \nkubelet statusz\nWarning: [^]*Up: 0 hr 00 min 00 sec\n/,
      String(accept),
    );
    assert.match(text, /Paths: .*\/configz .*\/healthz .*\/statusz\n$/);
  }
  assert.match((await ask("/flagz")).text, /\nkubelet flagz\nWarning: [^]*\n\nport=10250\n$/);
});

test("programs get the object of the requested version", async () => {
  const json = await ask("/statusz", "application/json;as=Statusz;v=v1beta1;g=config.k8s.io");
  const object = JSON.parse(json.text.replace("application/json ", "")) as Record<string, unknown>;
  assert.equal(object["apiVersion"], "config.k8s.io/v1beta1");
  assert.equal(object["kind"], "Statusz");
  assert.equal(object["binaryVersion"], "0.1.0");
  assert.equal(object["uptimeSeconds"], 0);
  const yaml = await ask("/flagz", "text/html, application/yaml;g=config.k8s.io;v=v1alpha1;as=Flagz");
  assert.deepEqual(parse(yaml.text.replace("application/yaml ", "")), {
    kind: "Flagz",
    apiVersion: "config.k8s.io/v1alpha1",
    metadata: { name: "kubelet" },
    flags: { port: "10250" },
  });
});

test("a client that accepts no served format gets the list of formats", async () => {
  for (const accept of ["application/json", "text/html", "application/json;as=Statusz;v=v2;g=config.k8s.io"]) {
    const { status, text } = await ask("/statusz", accept);
    assert.equal(status, 406, accept);
    assert.match(text, /only the following media types are accepted: text\/plain, application\/json;as=Statusz/);
  }
});
