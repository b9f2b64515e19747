import { admissionFacts, admissionTerms, outOfTerm } from "./vocabulary/admission.ts";
import { evictionFacts, evictionTerms } from "./vocabulary/eviction.ts";
import { imageFacts, imageTerms } from "./vocabulary/images.ts";
import { journalFacts, journalTerms } from "./vocabulary/journal.ts";
import { nodeFacts, nodeTerms } from "./vocabulary/node.ts";
import { plegFacts, plegTerms } from "./vocabulary/pleg.ts";
import { podFacts, podTerms } from "./vocabulary/pods.ts";
import { proberFacts, proberTerms } from "./vocabulary/prober.ts";
import { runtimeFacts, runtimeTerms } from "./vocabulary/runtime.ts";
import { shutdownTerms } from "./vocabulary/shutdown.ts";
import { sourceFacts, sourceTerms } from "./vocabulary/sources.ts";
import { statusFacts, statusTerms } from "./vocabulary/status.ts";
import type { Fact, Facts, JournalKind, Term, Terms } from "./vocabulary/term.ts";
import { volumeFacts, volumeTerms } from "./vocabulary/volumes.ts";

/** Every name of an entry. A room with new entries adds its lines here. */
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
} as const satisfies Terms;

/** Every fact that a cause can name and that is no entry. */
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
/** There is too little of a resource, which a cluster may name as it likes. */
type OutOf = `OutOf${string}`;

/** Names of entries of that kind; outcomes have their actions' names. */
export type NameOf<Kind extends JournalKind> =
  | {
      [Name in keyof AllTerms]: AllTerms[Name]["kind"] extends Kind | KindOfOutcome<Kind> ? Name : never;
    }[keyof AllTerms]
  | ("decision" extends Kind ? OutOf : never);
type KindOfOutcome<Kind extends JournalKind> = "outcome" extends Kind ? "action" : never;

/** The name of an entry. */
export type EntryName = keyof AllTerms | OutOf;

/** What a cause names: an entry that was recorded, or another fact. */
export type CauseCode = EntryName | keyof typeof facts;

/** Why a pod is refused: upstream's reasons. */
export type RejectionReason =
  | { [Name in keyof AllTerms]: AllTerms[Name] extends { readonly refuses: string } ? Name : never }[keyof AllTerms]
  | OutOf;

const termOfName: ReadonlyMap<string, Term> = new Map(Object.entries<Term>(terms));
const factOfCode: ReadonlyMap<string, Fact> = new Map(Object.entries<Fact>(facts));

/** All that hangs on the name. */
export function termOf(name: EntryName): Term {
  return termOfName.get(name) ?? outOfTerm;
}

/** All that hangs on a cause's code where it is no entry's name. */
export function factOf(code: CauseCode): Fact | undefined {
  return factOfCode.get(code);
}

/** Whether this version knows the name: journals of others may hold names of their own. */
export function isEntryName(text: string): text is EntryName {
  return termOfName.has(text) || text.startsWith("OutOf");
}

/** Whether this version knows the code. */
export function isCauseCode(text: string): text is CauseCode {
  return factOfCode.has(text) || isEntryName(text);
}

/** The name, or what stands for one of another version. */
export function entryNameOf(text: string): EntryName {
  return isEntryName(text) ? text : "UnknownEntry";
}

/** The code, or what stands for one of another version. */
export function causeCodeOf(text: string): CauseCode {
  return isCauseCode(text) ? text : "UnknownCause";
}

/** Whether a pod was rejected, by its reason. */
export function isRejection(text: string): text is RejectionReason {
  return isEntryName(text) && termOf(text).refuses !== undefined;
}
