import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { test } from "node:test";
import { redactSecrets, secretDigest } from "./redact.ts";

const hashing = { sha256: (data: string | Uint8Array) => createHash("sha256").update(data).digest("hex") };

test("a secret's digest is HMAC-SHA-256, for short and long keys", () => {
  for (const key of [Buffer.from("k"), Buffer.alloc(64, 7), Buffer.alloc(200, 9)]) {
    const expected = createHmac("sha256", key).update("hunter2").digest("hex").slice(0, 32);
    assert.equal(secretDigest(hashing, key, "hunter2"), `digest:${expected}`);
  }
});

test("redacting leaves everything but secrets as it was", () => {
  const redacted = redactSecrets(
    {
      kind: "List",
      items: [
        { kind: "Secret", metadata: { name: "db" }, data: { user: "YQ==", "tls.key": "Yg==" }, stringData: { x: "y" } },
        { kind: "ConfigMap", data: { color: "red", port: 80 } },
        {
          env: [
            { name: "DB_PASSWORD", value: "c" },
            { name: "COLOR", value: "blue" },
          ],
        },
        { registryToken: "d", secretRef: { name: "db" }, automountServiceAccountToken: false, tokens: ["kept"] },
      ],
    },
    (secret) => `<${secret}>`,
  );
  assert.deepEqual(redacted, {
    kind: "List",
    items: [
      {
        kind: "Secret",
        metadata: { name: "db" },
        data: { user: "<YQ==>", "tls.key": "<Yg==>" },
        stringData: { x: "<y>" },
      },
      { kind: "ConfigMap", data: { color: "red", port: 80 } },
      {
        env: [
          { name: "DB_PASSWORD", value: "<c>" },
          { name: "COLOR", value: "blue" },
        ],
      },
      { registryToken: "<d>", secretRef: { name: "db" }, automountServiceAccountToken: false, tokens: ["kept"] },
    ],
  });
});
