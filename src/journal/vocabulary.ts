import { admissionFacts, admissionTerms, outOfTerm } from "./vocabulary/admission.ts";
import { evictionFacts, evictionTerms } from "./vocabulary/eviction.ts";
import { imageFacts, imageTerms } from "./vocabulary/images.ts";
import { journalFacts, journalTerms } from "./vocabulary/journal.ts";
import { nodeFacts, nodeTerms } from "./vocabulary/node.ts";
import { pluginTerms } from "./vocabulary/plugins.ts";
import { plegFacts, plegTerms } from "./vocabulary/pleg.ts";
import { podFacts, podTerms } from "./vocabulary/pods.ts";
import { proberFacts, proberTerms } from "./vocabulary/prober.ts";
import { runtimeFacts, runtimeTerms } from "./vocabulary/runtime.ts";
import { shutdownTerms } from "./vocabulary/shutdown.ts";
import { sourceFacts, sourceTerms } from "./vocabulary/sources.ts";
import { statusFacts, statusTerms } from "./vocabulary/status.ts";
import type { Fact, Facts, JournalKind, Term, Terms } from "./vocabulary/term.ts";
import { volumeFacts, volumeTerms } from "./vocabulary/volumes.ts";

/** All entry names. A room with new entries adds its lines here. */
export const terms = {
  ...journalTerms,
  ...sourceTerms,
  ...admissionTerms,
  ...evictionTerms,
  ...podTerms,
  ...runtimeTerms,
  ...plegTerms,
  ...imageTerms,
  ...volumeTerms,
  ...proberTerms,
  ...statusTerms,
  ...nodeTerms,
  ...shutdownTerms,
  ...pluginTerms,
} as const satisfies Terms;

/** All facts that causes name without an entry. */
export const facts = {
  ...journalFacts,
  ...sourceFacts,
  ...admissionFacts,
  ...evictionFacts,
  ...podFacts,
  ...runtimeFacts,
  ...plegFacts,
  ...imageFacts,
  ...volumeFacts,
  ...proberFacts,
  ...statusFacts,
  ...nodeFacts,
} as const satisfies Facts;

type AllTerms = typeof terms;
/** A resource is insufficient; its name may come from the cluster. */
type OutOf = `OutOf${string}`;

/** Names of entries of a kind; outcomes have their actions' names. */
export type NameOf<Kind extends JournalKind> =
  | {
      [Name in keyof AllTerms]: AllTerms[Name]["kind"] extends Kind | KindOfOutcome<Kind> ? Name : never;
    }[keyof AllTerms]
  | ("decision" extends Kind ? OutOf : never);
type KindOfOutcome<Kind extends JournalKind> = "outcome" extends Kind ? "action" : never;

export type EntryName = keyof AllTerms | OutOf;

/** What a cause names: a recorded entry, or another fact. */
export type CauseCode = EntryName | keyof typeof facts;

/** Why a pod is rejected: upstream's reasons. */
export type RejectionReason =
  | { [Name in keyof AllTerms]: AllTerms[Name] extends { readonly refuses: string } ? Name : never }[keyof AllTerms]
  | OutOf;

const termOfName: ReadonlyMap<string, Term> = new Map(Object.entries<Term>(terms));
const factOfCode: ReadonlyMap<string, Fact> = new Map(Object.entries<Fact>(facts));

export function termOf(name: EntryName): Term {
  return termOfName.get(name) ?? outOfTerm;
}

/** The fact for a cause's code; undefined for an entry's name. */
export function factOf(code: CauseCode): Fact | undefined {
  return factOfCode.get(code);
}

/** Whether this version knows the name: journals of other versions may have others. */
export function isEntryName(text: string): text is EntryName {
  return termOfName.has(text) || text.startsWith("OutOf");
}

export function isCauseCode(text: string): text is CauseCode {
  return factOfCode.has(text) || isEntryName(text);
}

/** The name, or the replacement for an unknown one. */
export function entryNameOf(text: string): EntryName {
  return isEntryName(text) ? text : "UnknownEntry";
}

/** The code, or the replacement for an unknown one. */
export function causeCodeOf(text: string): CauseCode {
  return isCauseCode(text) ? text : "UnknownCause";
}

export function isRejection(text: string): text is RejectionReason {
  return isEntryName(text) && termOf(text).refuses !== undefined;
}
