import assert from "node:assert/strict";
import { test } from "node:test";
import { watchEvents } from "./watch-stream.ts";

test("an ERROR event with an invalid code still has its message", async () => {
  for (const [object, told] of [
    [{ kind: "Status", code: "many", message: "etcd is away" }, /^ApiError: watch: etcd is away$/],
    [{ code: "many" }, /^ApiError: watch: the API server answered with 500$/],
    [{ code: 410, reason: "Expired" }, /answered with 410$/],
  ] as const) {
    async function* body(): AsyncIterable<Uint8Array> {
      yield new TextEncoder().encode(`${JSON.stringify({ type: "ERROR", object })}\n`);
    }
    await assert.rejects(async () => {
      for await (const event of watchEvents("watch", body())) assert.fail(event.type);
    }, told);
  }
});
