/** How far an attempt at a volume's set-up came. */
export type SetUpPhase = "claim" | "attachment" | "set-up";

/**
 * Counts a volume's failures in a row, for the pauses between its attempts. As in upstream, where each operation on a volume
 * has a back-off of its own and looks at claims have none: what fails for the first time is soon tried again, however long
 * the volume has waited for its claim.
 */
export class PhaseFailures {
  #looks = 0;
  #operation: { readonly phase: SetUpPhase; readonly failures: number } | undefined;

  /** Returns the number of failures before this one. */
  add(phase: SetUpPhase): number {
    if (phase === "claim") return this.#looks++;
    // The claim could be used.
    this.#looks = 0;
    const failures = this.#operation?.phase === phase ? this.#operation.failures : 0;
    this.#operation = { phase, failures: failures + 1 };
    return failures;
  }
}
