import type { BrokenInvariant } from "../base/invariant.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Logger } from "../ports/log.ts";

/** Reports each broken invariant once, in the journal and the log; podwright continues. */
export function tellBrokenInvariants(journal: Recorder, log: Logger): BrokenInvariant {
  const reported = new Set<string>();
  return (name, detail) => {
    if (reported.has(name)) return;
    reported.add(name);
    log.error("invariant broken; please report this podwright bug", { invariant: name, detail });
    journal.record({ kind: "note", what: "InvariantBroken", message: `broken invariant: ${name}: ${detail}` });
  };
}
