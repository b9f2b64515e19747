/** A small fault, put into one source file when it is loaded. */
export interface Mutant {
  readonly name: string;
  /** Below the project's root. */
  readonly file: string;
  /** Has to be there exactly once. */
  readonly from: string;
  readonly to: string;
}
