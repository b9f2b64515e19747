import assert from "node:assert/strict";
import { test } from "node:test";
import { nextLookMs, renewalMs, stateOf, timeProblem } from "./validity.ts";

const year = 365 * 24 * 3_600_000;
const certificate = { notBeforeMs: Date.UTC(2026, 0, 1), notAfterMs: Date.UTC(2026, 0, 1) + year };

test("a certificate is renewed after 70 to 90 % of its validity", () => {
  const at = (uniform: number): number => (renewalMs(certificate, uniform) - certificate.notBeforeMs) / year;
  assert.deepEqual(
    [at(0), at(0.5), at(0.9999)].map((part) => Number(part.toFixed(3))),
    [0.7, 0.8, 0.9],
  );
});

test("a certificate that is already due when issued is not renewed at once", () => {
  const storedMs = certificate.notAfterMs - 1000;
  assert.equal(renewalMs(certificate, 0, storedMs), storedMs + 5000);
});

test("a chain is expired as soon as one certificate is, and the message has both times", () => {
  const longer = { ...certificate, notAfterMs: certificate.notAfterMs + year };
  const nowMs = certificate.notAfterMs + 1;
  assert.equal(stateOf([longer, certificate], nowMs), "expired");
  assert.equal(stateOf([longer, certificate], nowMs - 1), "valid");
  assert.equal(timeProblem([longer, certificate], nowMs - 1), undefined);
  assert.equal(
    timeProblem([longer, certificate], nowMs),
    "it expired at 2027-01-01T00:00:00Z; this machine's clock is at 2027-01-01T00:00:00Z",
  );
});

test("a certificate is checked at its expiry, and periodically before and after", () => {
  const { notAfterMs } = certificate;
  const waits = [notAfterMs - year, notAfterMs - 5000, notAfterMs, notAfterMs + 1].map((nowMs) =>
    nextLookMs([certificate, { ...certificate, notAfterMs: notAfterMs + year }], nowMs, 600_000),
  );
  assert.deepEqual(waits, [600_000, 5001, 1, 600_000]);
  assert.equal(nextLookMs([], notAfterMs, 600_000), 600_000);
});

test("a certificate that is not valid yet suggests a wrong clock of this machine", () => {
  const nowMs = certificate.notBeforeMs - 3_600_000;
  assert.equal(stateOf([certificate], nowMs), "not yet valid");
  const problem = timeProblem([certificate], nowMs) ?? "";
  assert.match(
    problem,
    /^it is valid from 2026-01-01T00:00:00Z on, and .* is at 2025-12-31T23:00:00Z, which is probably/,
  );
});
