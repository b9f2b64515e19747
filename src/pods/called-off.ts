import type { Cause } from "../journal/entry.ts";

/** The step was canceled because the desired state changed. */
export class CalledOff extends Error {
  constructor(cause: Cause) {
    super(cause.message);
    this.name = "AbortError";
  }
}
