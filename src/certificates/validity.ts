import { formatTime } from "../base/time.ts";
import type { CertificateInfo } from "../ports/certificates.ts";

type Validity = Pick<CertificateInfo, "notBeforeMs" | "notAfterMs">;

/** A certificate whose time of renewal has come already when it is issued is renewed no sooner than this after. */
const restMs = 5000;

/**
 * When a certificate is renewed: after 70 to 90 % of its lifetime, so that nodes that joined together do not renew
 * together. Wall clock, milliseconds. Pure.
 * @param uniform random, in [0, 1)
 * @param storedMs when it was taken into use; undefined: in an earlier run
 */
export function renewalMs({ notBeforeMs, notAfterMs }: Validity, uniform: number, storedMs?: number): number {
  const dueMs = notBeforeMs + (notAfterMs - notBeforeMs) * (0.7 + 0.2 * uniform);
  return storedMs === undefined ? dueMs : Math.max(dueMs, storedMs + restMs);
}

/** How a certificate stands to the time. A server judges by its own clock, so one of the future is not useless. */
export type CertificateState = "valid" | "expired" | "not yet valid";

/** The state of a chain: expired when any of it is, as upstream has it. Pure. */
export function stateOf(chain: readonly Validity[], nowMs: number): CertificateState {
  if (chain.some(({ notAfterMs }) => nowMs > notAfterMs)) return "expired";
  return chain.some(({ notBeforeMs }) => nowMs < notBeforeMs) ? "not yet valid" : "valid";
}

/** A chain is valid as long as all of its certificates are. */
function endMs(chain: readonly Validity[]): number {
  return Math.min(...chain.map(({ notAfterMs }) => notAfterMs));
}

/** How long until a checked chain expires, at most the longest pause, which also applies after its expiry. Pure. */
export function nextLookMs(chain: readonly Validity[], nowMs: number, longestMs: number): number {
  const leftMs = endMs(chain) - nowMs;
  return leftMs < 0 ? longestMs : Math.min(longestMs, leftMs + 1);
}

/** What is wrong with a chain's time, for people; undefined: nothing. Pure. */
export function timeProblem(chain: readonly Validity[], nowMs: number): string | undefined {
  const state = stateOf(chain, nowMs);
  if (state === "valid") return undefined;
  const clock = `this machine's clock is at ${formatTime(nowMs)}`;
  if (state === "expired") {
    return `it expired at ${formatTime(endMs(chain))}; ${clock}`;
  }
  const atMs = Math.max(...chain.map(({ notBeforeMs }) => notBeforeMs));
  return `it is valid from ${formatTime(atMs)} on, and ${clock}, which is probably behind`;
}
