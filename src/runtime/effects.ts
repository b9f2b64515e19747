import type { Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Cri } from "../ports/cri.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { Random } from "../ports/random.ts";

/** The ports through which pods are acted on. */
export interface Effects {
  readonly clock: Clock;
  readonly random: Random;
  readonly cri: Cri;
  readonly files: Files;
  readonly journal: Recorder;
  readonly log: Logger;
}
