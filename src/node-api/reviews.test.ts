import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import type { ApiCall } from "../api-client/client.ts";
import { ApiError } from "../api-client/api-error.ts";
import type { ApiObject } from "../api-client/resource.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import type { NodeRequest } from "../ports/node-server.ts";
import { byAccessReview, byTokenReview } from "./reviews.ts";

class Fixture {
  readonly clock = new ManualClock(0);
  readonly random = { uniform: (): number => 0 };
  readonly hashing = systemHashing;
  readonly asked: unknown[] = [];
  answer: () => unknown = () => ({});
  readonly client = {
    create: async <T extends ApiObject>({ resource }: ApiCall<T>, object: object): Promise<T> => {
      this.asked.push((object as { readonly spec: unknown }).spec);
      return resource.decode({ metadata: {}, status: this.answer() });
    },
  };
}

const { signal } = new AbortController();

function request(token: string | undefined): NodeRequest {
  const headers = { authorization: token && `Bearer ${token}` };
  const query = new URLSearchParams();
  return {
    method: "GET",
    path: "/",
    query,
    body: async () => "",
    signal,
    headers,
    certificate: undefined,
    upgrade: false,
  };
}

test("a token is reviewed once within the cache period, also when it is rejected", async () => {
  const fixture = new Fixture();
  const authenticate = byTokenReview(fixture, 120_000);
  assert.equal(await authenticate(request(undefined)), undefined);
  fixture.answer = () => ({ authenticated: true, user: { username: "bob", groups: ["dev"], uid: "1" } });
  const bob = { name: "bob", groups: ["dev"], uid: "1" };
  assert.deepEqual([await authenticate(request("a")), await authenticate(request("a"))], [bob, bob]);
  fixture.answer = () => ({ authenticated: false });
  assert.deepEqual([await authenticate(request("b")), await authenticate(request("b"))], ["invalid", "invalid"]);
  assert.deepEqual(fixture.asked, [{ token: "a" }, { token: "b" }]);
  await fixture.clock.advance(120_000);
  assert.equal(await authenticate(request("a")), "invalid", "it was taken back meanwhile");
});

test("invalid reviews give no access", async () => {
  const fixture = new Fixture();
  const authenticate = byTokenReview(fixture, 1000);
  for (const [index, user] of [undefined, {}, { username: "" }, { username: 1 }, "bob"].entries()) {
    fixture.answer = () => ({ authenticated: true, user });
    assert.equal(await authenticate(request(`t${index}`)), "invalid");
  }
  fixture.answer = () => ({ authenticated: "true", user: { username: "bob" } });
  assert.equal(await authenticate(request("t")), "invalid");
});

test("a failed review is an error, and is retried", async () => {
  const fixture = new Fixture();
  fixture.answer = () => {
    throw new Error("the API server is away");
  };
  const authenticate = byTokenReview(fixture, 1000);
  await assert.rejects(authenticate(request("a")), /away/);
  await assert.rejects(authenticate(request("a")), /away/);
  assert.equal(fixture.asked.length, 2);
});

test("a review with an error is one, and is not remembered: the server may have been unable to judge the token", async () => {
  const fixture = new Fixture();
  const authenticate = byTokenReview(fixture, 120_000);
  fixture.answer = () => ({ error: "[invalid bearer token, its webhook timed out]" });
  await assert.rejects(
    authenticate(request("a")),
    /^Error: token review: \[invalid bearer token, its webhook timed out\]$/,
  );
  fixture.answer = () => ({ authenticated: true, user: { username: "bob" }, error: "a warning" });
  assert.deepEqual(await authenticate(request("a")), { name: "bob", groups: [] });
});

test("reviews that a restarting server fails are repeated", async () => {
  const fixture = new Fixture();
  fixture.answer = () => {
    if (fixture.asked.length % 2 === 1) throw new ApiError(500, "InternalError", "etcd is away");
    return { authenticated: true, user: { username: "bob" }, allowed: true };
  };
  const bob = { name: "bob", groups: [] };
  const identified = byTokenReview(fixture, 1000)(request("a"));
  await fixture.clock.advance(500);
  assert.deepEqual(await identified, bob);
  const authorize = byAccessReview(fixture, "node1", { allowedMs: 1000, deniedMs: 1000 });
  const allowed = authorize(bob, { verb: "get", subresources: ["pods"] }, signal);
  await fixture.clock.advance(500);
  assert.deepEqual([await allowed, fixture.asked.length], [true, 4]);
});

test("access is reviewed by subresource, the first allowed one suffices, and results are cached", async () => {
  const fixture = new Fixture();
  const authorize = byAccessReview(fixture, "node1", { allowedMs: 300_000, deniedMs: 30_000 });
  const jane = { name: "jane", groups: ["ops"] };
  const pods = { verb: "get", subresources: ["pods", "proxy"] };
  const review = (subresource: string): object => ({
    user: "jane",
    groups: ["ops"],
    resourceAttributes: { verb: "get", version: "v1", resource: "nodes", name: "node1", subresource },
  });
  fixture.answer = () => ({ allowed: fixture.asked.length === 2 });
  assert.equal(await authorize(jane, pods, signal), true);
  assert.deepEqual(fixture.asked, [review("pods"), review("proxy")]);
  assert.equal(await authorize(jane, pods, signal), true);
  assert.equal(fixture.asked.length, 2, "both answers are remembered");
  await fixture.clock.advance(30_000);
  assert.equal(await authorize(jane, pods, signal), true);
  assert.deepEqual(fixture.asked.slice(2), [review("pods")], "the refusal was asked for anew");
});

test("what restricts a token reaches its review, and no answer is another token's", async () => {
  const fixture = new Fixture();
  const extra = { "scopes.example.org": ["user:info"], odd: ["a", 1] };
  fixture.answer = () => ({ authenticated: true, user: { username: "bob", uid: "1", groups: ["dev"], extra } });
  const bob = await byTokenReview(fixture, 1000)(request("a"));
  const kept = { "scopes.example.org": ["user:info"], odd: ["a"] };
  assert.ok(bob !== undefined && bob !== "invalid");
  assert.equal(JSON.stringify(bob), JSON.stringify({ name: "bob", groups: ["dev"], uid: "1", extra: kept }));
  const authorize = byAccessReview(fixture, "node1", { allowedMs: 300_000, deniedMs: 300_000 });
  fixture.answer = () => ({ allowed: true });
  const pods = { verb: "get", subresources: ["pods"] };
  assert.equal(await authorize({ name: "bob", groups: ["dev"] }, pods, signal), true);
  fixture.answer = () => ({ allowed: false });
  assert.equal(await authorize(bob, pods, signal), false);
  const resourceAttributes = { verb: "get", version: "v1", resource: "nodes", name: "node1", subresource: "pods" };
  assert.deepEqual(fixture.asked.at(-1), { user: "bob", groups: ["dev"], uid: "1", extra: kept, resourceAttributes });
});

test("a review that both allows and denies denies", async () => {
  const fixture = new Fixture();
  const authorize = byAccessReview(fixture, "node1", { allowedMs: 1, deniedMs: 1 });
  fixture.answer = () => ({ allowed: true, denied: true });
  const proxy = { verb: "get", subresources: ["proxy"] };
  assert.equal(await authorize({ name: "a", groups: [] }, proxy, signal), false);
});
