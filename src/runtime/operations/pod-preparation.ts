import type { Pod } from "../../api/pod.ts";
import { withDeadline } from "../../base/deadline.ts";
import { bothEnded } from "../../base/side-by-side.ts";
import type { Cause } from "../../journal/entry.ts";
import type { NameOf } from "../../journal/vocabulary.ts";
import type { ResourceRecord } from "../../resources/resource-record.ts";
import type { Effects } from "../effects.ts";
import { keepSpec } from "../layout/kept-spec.ts";
import { makePodDirectories } from "../layout/pod-directories.ts";
import type { NodeContext } from "../node-context.ts";
import { podRef } from "../pod-ref.ts";
import type { PodCgroupProvider } from "../providers.ts";
import { recordActuated } from "../status/actuated.ts";
import { tellFailure } from "./tell-failure.ts";

/** The kernel and the disk take some ms; beyond this the pod reports the wait, and it is retried. */
const limitMs = 120_000;

type PreparationEffects = Pick<Effects, "clock" | "files" | "journal">;

export interface PreparationParts {
  readonly podCgroups: Pick<PodCgroupProvider, "ensure">;
  readonly actuated: Pick<ResourceRecord, "setPart">;
  readonly node: Pick<NodeContext, "rootDirectory" | "podLogsRoot">;
}

/** Creates what a pod needs before anything of it runs, and what is removed with it. */
export class PodPreparation {
  readonly #effects: PreparationEffects;
  readonly #parts: PreparationParts;

  constructor(effects: PreparationEffects, parts: PreparationParts) {
    this.#effects = effects;
    this.#parts = parts;
  }

  /** Directories, the stored spec and the cgroup; idempotent. @throws DeadlineError and FileError */
  async prepare(pod: Pod, cause: Cause): Promise<void> {
    const { clock, files, journal } = this.#effects;
    const { node, podCgroups, actuated } = this.#parts;
    const ref = podRef(pod);
    const part = (failure: NameOf<"observation">, what: string, work: () => Promise<void>): Promise<void> =>
      tellFailure(journal, { what: failure, pod: ref, cause }, () =>
        withDeadline(clock, `the ${what} of pod ${ref.namespace}/${ref.name}`, limitMs, undefined, work),
      );
    await part("FailedMakePodDataDirectories", "directories", () => makePodDirectories(files, node, pod));
    await bothEnded(
      part("FailedMakePodDataDirectories", "kept spec", () => keepSpec(files, node, pod, "start")),
      part("FailedCreatePodContainer", "cgroup", () => podCgroups.ensure(pod)),
    );
    recordActuated(actuated, pod, undefined);
  }
}
