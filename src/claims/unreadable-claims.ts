import { basename } from "node:path/posix";
import type { StoredProblem } from "../sources/run-store.ts";
import type { Binding } from "./bind.ts";
import type { KeptClaim } from "./kept-claim.ts";

const ofClaims = "persistentvolumeclaim_";

/**
 * Stored documents that cannot be read. A claim among them may be bound to any PersistentVolume, whose data is no other
 * claim's: until it is given again, claims are bound to volumes only by name.
 */
export class UnreadableClaims {
  #problems: readonly StoredProblem[] = [];

  load(problems: readonly StoredProblem[]): void {
    this.#problems = problems;
  }

  /** The document at that path has been replaced. */
  replaced(path: string): void {
    this.#problems = this.#problems.filter((problem) => problem.path !== path);
  }

  /** As they would be after these documents are replaced. */
  without(paths: readonly string[]): UnreadableClaims {
    const rest = new UnreadableClaims();
    rest.load(this.#problems.filter(({ path }) => !paths.includes(path)));
    return rest;
  }

  get messages(): readonly string[] {
    return this.#problems.map(({ message }) => message);
  }

  /** The binding, unless the volume may be another claim's. */
  allowed({ spec }: KeptClaim, binding: Binding): Binding {
    const claim = this.#problems.find(({ path }) => basename(path).startsWith(ofClaims));
    if (claim === undefined || binding.kind !== "volume" || spec.volumeName !== undefined) return binding;
    const remedy = "give its document again, or name the volume in this claim's volumeName";
    const why = `PersistentVolume ${binding.name} may be bound to a claim that cannot be read: ${claim.message}; ${remedy}`;
    return { kind: "none", why };
  }
}
