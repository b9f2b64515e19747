import assert from "node:assert/strict";
import { test } from "node:test";
import { withDefaults } from "./defaults.ts";
import { servingSettings } from "./serving.ts";

test("the defaults serve on 10250 to those whom an API server lets in", () => {
  const settings = servingSettings(withDefaults({}));
  assert.equal(settings?.port, 10250);
  assert.equal(settings.host, "0.0.0.0");
  assert.deepEqual([settings.readOnlyPort, settings.anonymous], [0, false]);
  assert.deepEqual(settings.tokenReview, { ttlMs: 120_000 });
  assert.deepEqual(settings.accessReview, { allowedMs: 300_000, deniedMs: 30_000 });
  assert.deepEqual(
    [settings.minVersion, settings.ciphers, settings.streamingIdleMs],
    ["TLSv1.2", undefined, 4 * 3600_000],
  );
  assert.equal(servingSettings(withDefaults({ enableServer: false })), undefined);
});

test("cipher suites have their names in OpenSSL, those of TLS 1.3 stay", () => {
  const tlsCipherSuites = ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"];
  const { ciphers } = servingSettings(withDefaults({ tlsCipherSuites })) ?? {};
  const modern = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
  assert.equal(ciphers, `${modern}:ECDHE-RSA-AES128-GCM-SHA256`);
});

test("versions, suites and half a key pair that can't be meant are named", () => {
  assert.throws(() => servingSettings(withDefaults({ tlsMinVersion: "TLS12" })), /unknown tls version "TLS12"/);
  assert.throws(
    () => servingSettings(withDefaults({ tlsCipherSuites: ["NULL"] })),
    /cipher suite "NULL" not supported/,
  );
  assert.throws(() => servingSettings(withDefaults({ tlsCertFile: "/a" })), /go together/);
});
