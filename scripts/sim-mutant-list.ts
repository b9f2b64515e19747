/** A small fault, put into one source file when it is loaded. */
export interface Mutant {
  readonly name: string;
  /** Which lives can show it; undefined: any. Only those are played. */
  readonly lives?: "drivers" | "devices" | "pressure" | "quotas" | "images" | "imageVolumes" | "machine";
  /** Relative to the project's root. */
  readonly file: string;
  /** Must occur exactly once. */
  readonly from: string;
  readonly to: string;
}
