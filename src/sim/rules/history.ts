import { lifeStarted } from "../../journal/entry.ts";
import type { EntryName } from "../../journal/vocabulary.ts";
import type { SimEntry } from "../life/node.ts";
import { mayRun, type SimContainer } from "../world-model.ts";
import { dataText, idOf } from "./entry-data.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** A container's stage according to podwright's journal. */
type Stage = "created" | "startAsked" | "running" | "stopAsked" | "ended" | "removeAsked" | "removedUnseen";

/** The entries allowed at each stage, with the next stage. `created` may be skipped. */
const next: Readonly<Record<string, Readonly<Partial<Record<Stage, Stage>>>>> = {
  StartContainer: { created: "startAsked" },
  ContainerStarted: {
    created: "running",
    startAsked: "running",
    stopAsked: "stopAsked",
    // A canceled start may have its effect while the container is being removed.
    removedUnseen: "removedUnseen",
  },
  StopContainer: {
    created: "created",
    startAsked: "stopAsked",
    running: "stopAsked",
    stopAsked: "stopAsked",
    ended: "ended",
  },
  ContainerDied: {
    created: "ended",
    startAsked: "ended",
    running: "ended",
    stopAsked: "ended",
    removedUnseen: "ended",
  },
  RemoveContainer: {
    created: "removedUnseen",
    startAsked: "removedUnseen",
    stopAsked: "removedUnseen",
    removedUnseen: "removedUnseen",
    ended: "removeAsked",
    removeAsked: "removeAsked",
  },
};

const beginnings: ReadonlySet<EntryName> = new Set(["RunPodSandbox", "CreateContainer", "StartContainer"]);

/**
 * The journal tells a possible history of each container: created, started once, seen running, seen exited, removed.
 * Nothing starts in a pod that podwright has reported as ending (design invariant 4).
 */
export const history: RuleMaker = ({ world }, broken): Rule => {
  const stages = new Map<string, Stage>();
  const ending = new Set<string>();
  const exits = new Map<string, SimContainer>();

  function move(entry: SimEntry, id: string): void {
    const moves = next[entry.what];
    if (moves === undefined) return;
    const from = stages.get(id) ?? "created";
    const to = moves[from];
    const where = `${entry.pod?.uid}/${entry.container} (${id})`;
    if (to === undefined) broken("legal history", `${entry.what} of ${where}, which is ${from}`);
    else stages.set(id, to);
    if (entry.what === "ContainerDied") {
      const truth = exits.get(id);
      const said = dataText(entry, "exitCode");
      // A container removed before its inspection has no known exit code.
      if (truth !== undefined && said !== "" && said !== String(truth.exitCode)) {
        broken("statuses match the runtime", `${where} ended with ${truth.exitCode}, and the journal says ${said}`);
      }
    }
    const container = world.containers.get(id);
    if (entry.what === "RemoveContainer" && container !== undefined && mayRun(container)) {
      broken("stopped before it is removed", `${where} is to be removed while it runs`);
    }
  }

  return {
    change: ({ type, container }) => {
      if (type === "exited" && container !== undefined) exits.set(container.id, container);
    },
    reborn: (uid) => void ending.delete(uid),
    entry: (entry) => {
      const uid = entry.pod?.uid ?? "";
      if (entry.what === lifeStarted) {
        ending.clear();
        // A new run sees everything for the first time.
        for (const id of stages.keys()) stages.set(id, "startAsked");
      }
      if (entry.what === "PodTerminating") ending.add(uid);
      if (entry.what === "PodFinished") ending.delete(uid);
      if (entry.kind === "action" && beginnings.has(entry.what) && ending.has(uid)) {
        broken("no operation begins in a pod that is ending", `${entry.what} of ${uid}/${entry.container ?? ""}`);
      }
      const id = idOf(entry);
      if (entry.kind !== "outcome" && entry.container !== undefined && id !== "") move(entry, id);
    },
  };
};
