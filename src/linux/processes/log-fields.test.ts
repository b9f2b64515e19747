import assert from "node:assert/strict";
import { test } from "node:test";
import { PodwrightError } from "../../base/errors.ts";
import { loggableFields, loggableText } from "./log-fields.ts";

test("fields with secret names are masked at any depth and in any spelling", () => {
  const fields = {
    password: "p",
    registry_token: "t",
    "X-Api-Key": "k",
    Authorization: ["Bearer x"],
    nested: { list: [{ identityToken: "t", user: "u" }] },
    env: { DATABASE: "url" },
    auth: { username: "u" },
  };
  assert.deepEqual(loggableFields(fields), {
    password: "[redacted]",
    registry_token: "[redacted]",
    "X-Api-Key": "[redacted]",
    Authorization: "[redacted]",
    nested: { list: [{ identityToken: "[redacted]", user: "u" }] },
    env: "[redacted]",
    auth: "[redacted]",
  });
});

test("names that only mention secrets are kept", () => {
  const fields = { secretName: "db", tokenExpirationSeconds: 600, hasPassword: true, author: "me", token: undefined };
  assert.deepEqual(loggableFields(fields), fields);
});

test("the data of Secrets and environment values are masked", () => {
  const secret = { kind: "Secret", metadata: { name: "db" }, data: { a: "b" }, stringData: { c: "d" } };
  assert.deepEqual(loggableFields({ object: secret }), {
    object: { kind: "Secret", metadata: { name: "db" }, data: "[redacted]", stringData: "[redacted]" },
  });
  assert.deepEqual(loggableFields({ variables: [{ name: "DB", value: "x" }] }), {
    variables: [{ name: "DB", value: "[redacted]" }],
  });
});

test("credentials in URLs and headers are masked in any text", () => {
  assert.equal(loggableText("GET https://me:pw@host/x failed"), "GET https://[redacted]@host/x failed");
  assert.equal(loggableText("sent Bearer abcdefgh.ijk-_ to it"), "sent Bearer [redacted] to it");
  assert.equal(loggableText("mail me@host, see https://host/@user"), "mail me@host, see https://host/@user");
});

test("errors keep their name, message, code, remedy and cause, and a stack only for a defect", () => {
  const cause = Object.assign(new Error("connect"), { code: "ECONNREFUSED" });
  const error = new PodwrightError(3, "no runtime at https://u:p@host", { cause, remedy: "Start it." });
  assert.deepEqual(loggableFields({ error }), {
    error: {
      type: "PodwrightError",
      message: "no runtime at https://[redacted]@host",
      remedy: "Start it.",
      cause: { type: "Error", message: "connect", code: "ECONNREFUSED" },
    },
  });
  const { error: defect } = loggableFields({ error: new TypeError("undefined") });
  assert.match(JSON.stringify(defect), /log-fields\.test\.ts/);
});

test("every kind of value becomes JSON, bounded in length, number and depth", () => {
  interface Ring {
    self?: Ring;
  }
  const ring: Ring = {};
  ring.self = ring;
  const fields = {
    big: 2n ** 63n,
    infinite: Infinity,
    date: new Date(0),
    bytes: new Uint8Array(3),
    map: new Map([["a", 1]]),
    set: new Set([1]),
    message: { $typeName: "v1.X", id: "1" },
    call: () => 1,
    ring,
    many: Array.from({ length: 60 }, () => 0),
    text: "x".repeat(10_000),
  };
  const loggable = loggableFields(fields);
  assert.equal(loggable["big"], "9223372036854775808");
  assert.equal(loggable["infinite"], "Infinity");
  assert.equal(loggable["date"], "1970-01-01T00:00:00.000Z");
  assert.equal(loggable["bytes"], "3 bytes");
  assert.deepEqual(loggable["map"], { a: 1 });
  assert.deepEqual(loggable["set"], [1]);
  assert.deepEqual(loggable["message"], { id: "1" });
  assert.equal(loggable["call"], undefined);
  assert.ok(JSON.stringify(loggable["many"]).includes("60 items"));
  assert.ok(JSON.stringify(loggable).length < 6_000);
});

test("fields cannot replace the line's own", () => {
  assert.deepEqual(loggableFields({ level: 1, time: 2, msg: 3 }), { level_: 1, time_: 2, msg_: 3 });
});
