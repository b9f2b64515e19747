import assert from "node:assert/strict";
import { test } from "node:test";
import { podYaml, SourceHarness } from "../../test/support/sources.ts";
import type { HttpRequest, HttpResponse, Network } from "../ports/network.ts";
import { displayUrl, HttpSource } from "./http-source.ts";

const problemsOf = ({ rejected }: Pick<HttpSource, "rejected">): string[] => rejected.map(({ message }) => message);

const url = "https://user:secret@example.com/pods?token=secret";

class Fixture extends SourceHarness {
  answer: () => HttpResponse | Promise<HttpResponse> = () => this.text(200, "");
  readonly requests: HttpRequest[] = [];
  readonly network: Pick<Network, "httpGet"> = {
    httpGet: async (request) => {
      this.requests.push(request);
      return this.answer();
    },
  };
  readonly source = new HttpSource(this, { url, headers: { "X-Key": ["k"] }, periodMs: 20_000 });
  readonly signal = new AbortController().signal;

  text(status: number, body: string): HttpResponse {
    return { status, body: new TextEncoder().encode(body) };
  }
}

test("a pod or a list of pods is accepted, with the configured headers", async () => {
  const fixture = new Fixture();
  fixture.answer = () => fixture.text(200, podYaml("one"));
  await fixture.source.refresh(fixture.signal);
  assert.deepEqual(fixture.pods, ["one-node1 busybox"]);
  assert.deepEqual(fixture.requests[0]?.headers, { "X-Key": ["k"] });
  const item = (name: string): object => ({ metadata: { name }, spec: { containers: [{ name: "c", image: "i" }] } });
  fixture.answer = () =>
    fixture.text(200, JSON.stringify({ apiVersion: "v1", kind: "PodList", items: [item("a"), item("b")] }));
  await fixture.source.refresh(fixture.signal);
  await fixture.source.refresh(fixture.signal);
  assert.deepEqual(fixture.pods, ["a-node1 i", "b-node1 i"]);
  assert.equal(fixture.delivered.length, 2);
  assert.equal(fixture.delivered[1]?.pods[0]?.pod.spec.tolerations, undefined);
});

test("while the URL fails or returns errors its pods stay; an empty response removes them", async () => {
  const fixture = new Fixture();
  fixture.answer = () => fixture.text(503, "");
  await fixture.source.refresh(fixture.signal);
  assert.deepEqual(fixture.delivered, []);
  fixture.answer = () => fixture.text(200, podYaml("one"));
  await fixture.source.refresh(fixture.signal);
  for (const answer of [fixture.text(200, podYaml("one", "a b")), fixture.text(404, "x")]) {
    fixture.answer = () => answer;
    await fixture.source.refresh(fixture.signal);
    assert.equal(fixture.source.rejected.length, 1);
    assert.doesNotMatch(problemsOf(fixture.source).join(), /secret/u);
  }
  assert.deepEqual(fixture.pods, ["one-node1 busybox"]);
  fixture.answer = () => fixture.text(200, "");
  await fixture.source.refresh(fixture.signal);
  assert.deepEqual([fixture.pods, problemsOf(fixture.source)], [[], []]);
});

test("a server that does not respond takes ten seconds, and is polled again after the period", async () => {
  const fixture = new Fixture();
  const controller = new AbortController();
  fixture.answer = () => new Promise(() => {});
  const running = fixture.source.run(controller.signal);
  await fixture.clock.advance(10_000);
  assert.match(problemsOf(fixture.source)[0] ?? "", /timed out after 10 s/u);
  fixture.answer = () => fixture.text(200, podYaml("one"));
  await fixture.clock.advance(20_000);
  assert.deepEqual(fixture.pods, ["one-node1 busybox"]);
  controller.abort();
  await running;
  assert.deepEqual(fixture.clock.waits, []);
});

test("URLs are shown without their secrets", () => {
  assert.equal(displayUrl(url), "https://example.com/pods?…");
  assert.equal(displayUrl("http://h:1/p"), "http://h:1/p");
  assert.equal(displayUrl("https://user:secret@h:port/p?token=secret"), "https:… (invalid URL)");
});
