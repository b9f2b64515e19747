import type { Cause } from "../journal/entry.ts";

/** The step was called off because something else is wanted now. */
export class CalledOff extends Error {
  constructor(cause: Cause) {
    super(`canceled: ${cause.message}`);
    this.name = "AbortError";
  }
}
