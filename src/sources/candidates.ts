import { fullName } from "../api/full-name.ts";
import type { PodUid } from "../base/ids.ts";
import type { SourceChange, SourcedPod, SourceName } from "./source.ts";

/** A pod that a source wants. */
export interface Candidate extends SourcedPod {
  readonly source: SourceName;
}

interface Placed {
  readonly candidate: Candidate;
  /** Orders the candidates of a source. */
  readonly place: number;
}

/** A candidate that has lost its name or its UID to another. */
export interface Loss {
  readonly winner: Candidate;
  /** Whether a winner has its UID: then there is no telling them apart. */
  readonly sharesUid: boolean;
}

/**
 * What all sources want, by name and by UID: a change of one pod among thousands concerns only those that share its name
 * or its UID.
 */
export class Candidates {
  readonly #sources: readonly SourceName[];
  readonly #known = new Map<SourceName, Map<SourcedPod, Placed>>();
  #nextPlace = 0;
  readonly #sharing = new Map<string, Set<Candidate>>();

  /** @param sources in the order of their candidates */
  constructor(sources: readonly SourceName[]) {
    this.#sources = sources;
  }

  /** Takes all that a source wants in place of what it wanted before. @returns those that left, then those that came */
  set(source: SourceName, pods: readonly SourcedPod[]): Candidate[] {
    const before = this.#known.get(source) ?? new Map<SourcedPod, Placed>();
    const after = new Map<SourcedPod, Placed>();
    const came: Candidate[] = [];
    for (const sourced of pods) {
      const known = before.get(sourced)?.candidate;
      const candidate = known ?? { ...sourced, source };
      after.set(sourced, { candidate, place: this.#nextPlace++ });
      if (known === undefined) came.push(candidate);
    }
    const left: Candidate[] = [];
    for (const [sourced, { candidate }] of before) if (!after.has(sourced)) left.push(candidate);
    this.#known.set(source, after);
    for (const candidate of left) this.#forget(candidate);
    for (const candidate of came) this.#add(candidate);
    return [...left, ...came];
  }

  /** Takes one change of what a source wants; what replaces another has its place. @returns as {@link set} */
  change(source: SourceName, { left, came }: Pick<SourceChange, "left" | "came">): Candidate[] {
    const known = this.#known.get(source) ?? new Map<SourcedPod, Placed>();
    this.#known.set(source, known);
    const before = left && known.get(left);
    if (left !== undefined) known.delete(left);
    if (before !== undefined) this.#forget(before.candidate);
    const changed = before === undefined ? [] : [before.candidate];
    if (came === undefined) return changed;
    const candidate = { ...came, source };
    known.set(came, { candidate, place: before?.place ?? this.#nextPlace++ });
    this.#add(candidate);
    return [...changed, candidate];
  }

  /** Those of a source, in the order in which it has them. */
  of(source: SourceName): Candidate[] {
    const placed = [...(this.#known.get(source)?.values() ?? [])];
    return placed.toSorted((a, b) => a.place - b.place).map(({ candidate }) => candidate);
  }

  /** In the order of the sources, and of each as it has them. */
  all(): Candidate[] {
    return this.#sources.flatMap((source) => this.of(source));
  }

  /** Those that share a name or a UID with one of these, or with another that does; in the order of {@link all}. */
  related(changed: readonly Candidate[]): Candidate[] {
    const found = new Set<Candidate>();
    const keys = new Set(changed.flatMap(keysOf));
    // What is added meanwhile is visited too.
    for (const key of keys) {
      for (const candidate of this.#sharing.get(key) ?? []) {
        found.add(candidate);
        for (const own of keysOf(candidate)) keys.add(own);
      }
    }
    return found.size < 2 ? [...found] : this.all().filter((candidate) => found.has(candidate));
  }

  #add(candidate: Candidate): void {
    for (const key of keysOf(candidate)) {
      const sharing = this.#sharing.get(key);
      if (sharing === undefined) this.#sharing.set(key, new Set([candidate]));
      else sharing.add(candidate);
    }
  }

  #forget(candidate: Candidate): void {
    for (const key of keysOf(candidate)) {
      const sharing = this.#sharing.get(key);
      sharing?.delete(candidate);
      if (sharing?.size === 0) this.#sharing.delete(key);
    }
  }
}

/**
 * Chooses among candidates that share names and UIDs with no others: the winners, by UID, and the losers. Pure.
 * @param rank the lowest wins; among equals the first one
 */
export function chooseAmong(
  candidates: readonly Candidate[],
  rank: (candidate: Candidate) => number,
): { readonly winners: ReadonlyMap<PodUid, Candidate>; readonly losses: ReadonlyMap<Candidate, Loss> } {
  const winners = new Map<PodUid, Candidate>();
  const names = new Map<string, Candidate>();
  const lost: { readonly candidate: Candidate; readonly winner: Candidate }[] = [];
  const ranked = candidates.map((candidate) => ({ candidate, rank: rank(candidate) }));
  for (const { candidate } of ranked.toSorted((a, b) => a.rank - b.rank)) {
    const { uid } = candidate.pod.metadata;
    const name = fullName(candidate.pod.metadata);
    const winner = names.get(name) ?? winners.get(uid);
    if (winner !== undefined) {
      lost.push({ candidate, winner });
      continue;
    }
    winners.set(uid, candidate);
    names.set(name, candidate);
  }
  const losses = lost.map(({ candidate, winner }): [Candidate, Loss] => {
    return [candidate, { winner, sharesUid: winners.has(candidate.pod.metadata.uid) }];
  });
  return { winners, losses: new Map(losses) };
}

function keysOf({ pod: { metadata } }: Candidate): string[] {
  return [`name ${fullName(metadata)}`, `uid ${metadata.uid}`];
}
