import assert from "node:assert/strict";
import { test } from "node:test";
import { createSecureContext } from "node:tls";
import { withDefaults } from "./defaults.ts";
import { servingSettings } from "./serving.ts";

test("by default port 10250 serves clients that the API server authorizes", () => {
  const settings = servingSettings(withDefaults({}));
  assert.equal(settings?.port, 10250);
  assert.equal(settings.host, "0.0.0.0");
  assert.deepEqual([settings.readOnlyPort, settings.anonymous], [0, false]);
  assert.deepEqual(settings.tokenReview, { ttlMs: 120_000 });
  assert.deepEqual(settings.accessReview, { allowedMs: 300_000, deniedMs: 30_000 });
  assert.deepEqual([settings.minVersion, settings.streamingIdleMs], ["TLSv1.2", 4 * 3600_000]);
  assert.equal(servingSettings(withDefaults({ enableServer: false })), undefined);
});

test("the default cipher suites are Go's, each with forward secrecy", () => {
  const names = servingSettings(withDefaults({}))?.ciphers.split(":") ?? [];
  const older = names.filter((name) => !name.startsWith("TLS_"));
  assert.deepEqual([names.length, older.length], [13, 10]);
  assert.ok(
    older.every((name) => /^ECDHE-(?:ECDSA|RSA)-(?:AES\d+-GCM-SHA\d+|CHACHA20-POLY1305|AES\d+-SHA)$/.test(name)),
  );
  const context = createSecureContext({ ciphers: names.join(":") });
  assert.ok(context, "OpenSSL knows them");
});

test("cipher suites get OpenSSL's names, and those of TLS 1.3 stay enabled", () => {
  const tlsCipherSuites = ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"];
  const { ciphers } = servingSettings(withDefaults({ tlsCipherSuites })) ?? {};
  const modern = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
  assert.equal(ciphers, `${modern}:ECDHE-RSA-AES128-GCM-SHA256`);
});

test("invalid versions and suites and half a key pair are named in the error", () => {
  assert.throws(() => servingSettings(withDefaults({ tlsMinVersion: "TLS12" })), /unknown tls version "TLS12"/);
  assert.throws(
    () => servingSettings(withDefaults({ tlsCipherSuites: ["NULL"] })),
    /cipher suite "NULL" not supported/,
  );
  assert.throws(() => servingSettings(withDefaults({ tlsCertFile: "/a" })), /must be set together/);
});

test("an invalid address or authorization mode is named in the error", () => {
  assert.throws(
    () => servingSettings(withDefaults({ address: "300.1.1.1" })),
    /address "300.1.1.1" is not an IP address/,
  );
  assert.equal(servingSettings(withDefaults({ address: "::" }))?.host, "::");
  const modeOf = (mode: string): unknown => servingSettings(withDefaults({ authorization: { mode } }));
  assert.throws(() => modeOf("RBAC"), /unknown authorization mode "RBAC"/);
  assert.ok(modeOf("AlwaysAllow"));
});

test("a negative idle timeout never closes streams", () => {
  assert.equal(servingSettings(withDefaults({ streamingConnectionIdleTimeout: "-1s" }))?.streamingIdleMs, 0);
});
