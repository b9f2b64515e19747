import assert from "node:assert/strict";
import { test } from "node:test";
import { createSecureContext } from "node:tls";
import { openSslCurves } from "./curves.ts";

test("tlsCurvePreferences name key exchanges by Go's numbers; their order has no effect", () => {
  assert.equal(openSslCurves([]), undefined);
  assert.equal(openSslCurves([23, 29]), "X25519:P-256");
  const all = openSslCurves([23, 24, 25, 29, 4587, 4588, 4589]);
  assert.equal(all, "X25519MLKEM768:SecP256r1MLKEM768:SecP384r1MLKEM1024:X25519:P-256:P-384:P-521");
  assert.ok(createSecureContext({ ecdhCurve: all }), "OpenSSL knows them all");
});

test("an unknown key exchange is rejected in upstream's words", () => {
  assert.throws(
    () => openSslCurves([0]),
    /tlsCurvePreferences: curve preference 0 is out of range \(must be 1-65535\)/u,
  );
  assert.throws(() => openSslCurves([70_000]), /out of range/u);
  assert.throws(() => openSslCurves([29, 29]), /duplicate curve preference 29/u);
  assert.throws(() => openSslCurves([30]), /curve preference 30 is not supported/u);
});
