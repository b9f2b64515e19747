import { admissionMeanings, outOfMeaning } from "./meanings/admission.ts";
import { errorMeanings } from "./meanings/errors.ts";
import { evictionMeanings } from "./meanings/eviction.ts";
import { imageMeanings } from "./meanings/images.ts";
import { journalMeanings } from "./meanings/journal.ts";
import type { Meaning, Meanings } from "./meanings/meaning.ts";
import { nodeMeanings } from "./meanings/node.ts";
import { pluginMeanings } from "./meanings/plugins.ts";
import { plegMeanings } from "./meanings/pleg.ts";
import { podMeanings } from "./meanings/pods.ts";
import { proberMeanings } from "./meanings/prober.ts";
import { runtimeMeanings } from "./meanings/runtime.ts";
import { shutdownMeanings } from "./meanings/shutdown.ts";
import { sourceMeanings } from "./meanings/sources.ts";
import { statusMeanings } from "./meanings/status.ts";
import { volumeMeanings } from "./meanings/volumes.ts";
import { type facts, termOf, terms } from "./vocabulary.ts";
import type { JournalKind } from "./vocabulary/term.ts";

/** The group of a name: a kind of journal entries, or something else. */
export type CatalogueKind = JournalKind | "cause" | "waiting reason" | "terminated reason" | "error";

/** One name that podwright uses in its journal, in statuses or in errors. */
export interface CatalogueEntry extends Meaning {
  readonly name: string;
  readonly kind: CatalogueKind;
}

const meanings = {
  ...admissionMeanings,
  ...evictionMeanings,
  ...imageMeanings,
  ...journalMeanings,
  ...nodeMeanings,
  ...plegMeanings,
  ...pluginMeanings,
  ...podMeanings,
  ...proberMeanings,
  ...runtimeMeanings,
  ...shutdownMeanings,
  ...sourceMeanings,
  ...statusMeanings,
  ...volumeMeanings,
} as const satisfies Meanings<keyof typeof terms | keyof typeof facts>;

/** All names with their meanings: those of the journal, then of statuses and errors, each group sorted by name. */
export function catalogue(): CatalogueEntry[] {
  const group = (
    named: Readonly<Record<string, Meaning>>,
    kindOf: (name: string) => CatalogueKind,
  ): CatalogueEntry[] => {
    const names = Object.keys(named).toSorted();
    return names.flatMap((name) => {
      const meaning = named[name];
      return meaning === undefined ? [] : [{ name, kind: kindOf(name), ...meaning }];
    });
  };
  const { waitingReasons, terminatedReasons, errorClasses } = errorMeanings;
  return [
    ...group(meanings, (name) => (name in terms ? termOf(name as keyof typeof terms).kind : "cause")),
    ...group(waitingReasons, () => "waiting reason"),
    ...group(terminatedReasons, () => "terminated reason"),
    ...group(errorClasses, () => "error"),
  ];
}

/** The entries of a name, case-insensitive: a reason may have the name of an error. Empty for an unknown name. */
export function entriesOf(name: string): CatalogueEntry[] {
  const wanted = name.toLowerCase();
  const found = catalogue().filter((entry) => entry.name.toLowerCase() === wanted);
  if (found.length > 0 || !/^outof./i.test(name)) return found;
  return [{ name, kind: "decision", ...outOfMeaning }];
}
