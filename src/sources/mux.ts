import type { PodUid } from "../base/ids.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { byCreation } from "../api/creation-order.ts";
import { fullName } from "../api/full-name.ts";
import type { Pod } from "../api/pod.ts";
import { formatTime } from "../base/time.ts";
import { StartUp } from "../base/start-up.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import { Annotation } from "../runtime/config/labels.ts";
import type { Logger } from "../ports/log.ts";
import { isBackupName } from "./backup-name.ts";
import { type Candidate, Candidates, chooseAmong, type Loss } from "./candidates.ts";
import { canonicalJson } from "./canonical-json.ts";
import type { PodUpdate, SourceChange, SourceName, SourceState } from "./source.ts";

export interface MuxDependencies {
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly log: Pick<Logger, "warn">;
}

/** Whom the mux serves. */
export interface MuxPeer {
  /** Called for one change after the other, in order; must not throw. */
  readonly onUpdate: (update: PodUpdate) => void;
  /** Whether the runtime has a part of the pod with that UID. */
  readonly isListed: (uid: PodUid) => boolean;
  readonly startUp: Pick<StartUp, "has" | "when">;
}

interface Running extends Candidate {
  /** The source's own object, without additions: sources return the same one until the pod changes. */
  readonly sourced: Pod;
}

/** A pod that a source wants, and whose name another has. */
export interface IgnoredPod {
  readonly pod: Pod;
  readonly source: SourceName;
  /** From where the pod comes that has its name. */
  readonly holder: SourceName;
}

/** Two manifests of one name or UID, of which one runs. */
export interface Contest {
  /** Of the pod that is passed on. */
  readonly uid: PodUid;
  readonly place: string;
  /** Where the manifest stands that is ignored. */
  readonly ignored: string;
}

/** The journal's view of a passed change. */
interface Told {
  readonly what: "PodAdded" | "PodChanged" | "PodRemoved";
  readonly code: "ManifestAdded" | "ManifestChanged" | "ManifestRemoved";
  readonly message: string;
}

/** A pod's origin, for users who do not know the node's files. */
const origins: Readonly<Record<SourceName, string>> = {
  file: "a static pod of the node",
  http: "a static pod of the node",
  api: "a pod of the API server",
  run: "a pod of podwright run",
};

/**
 * Merges what the sources want into one ordered stream of changes. Of several pods with one full name or one UID the
 * first wins for as long as it is wanted, and at a start one that runs already; the others are reported
 * (FailedValidation) and take over when it goes. Of several files a copy ({@link isBackupName}) comes last, and the one
 * that had the name before first: it gets it back. Adds the annotations config.source and config.seen, as upstream's
 * PodConfig does.
 */
export class PodMux {
  readonly #deps: MuxDependencies;
  #peer: MuxPeer = { onUpdate: () => {}, isListed: () => false, startUp: new StartUp() };
  readonly #sources: readonly SourceName[];
  /** By source: whether all that it has is known. */
  readonly #complete = new Map<SourceName, boolean>();
  readonly #candidates: Candidates;
  /** The pods that are passed on, by UID and by full name. */
  readonly #running = new Map<PodUid, Running>();
  readonly #holders = new Map<string, Running>();
  /** Pods that are wanted and not passed on. */
  readonly #losses = new Map<Candidate, Loss>();
  /** Those that were reported, so that each is reported once. */
  #reported: ReadonlyMap<string, Contest> = new Map();
  /** Of each name that files ask for: the one that had it first. */
  readonly #firstFiles = new Map<string, string>();

  /** @param sources every source there is; the order decides between pods that come at the same moment */
  constructor(deps: MuxDependencies, sources: readonly SourceName[]) {
    this.#deps = deps;
    this.#sources = sources;
    this.#candidates = new Candidates(sources);
  }

  /** To be called once, before any source says anything. */
  connect(peer: MuxPeer): void {
    this.#peer = peer;
    void peer.startUp.when("listed").then(() => this.#apply(this.#candidates.all()));
  }

  /** True once every source has said all that it wants: before, nothing is known to be unwanted. */
  allSourcesSeen(): boolean {
    return this.#sources.every((source) => this.isSeen(source));
  }

  /** The same for one source. An unknown source counts as seen. */
  isSeen(source: string): boolean {
    return !this.#sources.some((name) => name === source && this.#complete.get(name) !== true);
  }

  /** Pods that are wanted now, as they were passed on. */
  pods(): readonly { readonly source: SourceName; readonly pod: Pod; readonly place: string }[] {
    return [...this.#running.values()];
  }

  /** Of these the static ones. */
  statics(): Pod[] {
    const found = new Set<Running>();
    for (const source of ["file", "http"] as const) {
      for (const { pod } of this.#candidates.of(source)) {
        const running = this.#running.get(pod.metadata.uid);
        if (running?.source === source) found.add(running);
      }
    }
    return [...found].map(({ pod }) => pod);
  }

  /** Pods that are wanted, and wait until their names are free. */
  ignored(): readonly IgnoredPod[] {
    return [...this.#losses].flatMap(([{ pod, source }, { winner, sharesUid }]) => {
      return sharesUid ? [] : [{ pod, source, holder: winner.source }];
    });
  }

  /** Manifests that stand behind another of their name. */
  contests(): readonly Contest[] {
    return [...this.#contests().values()];
  }

  /** Takes all that a source wants now, in place of what it wanted before. What is the same is the same object. */
  set(source: SourceName, state: SourceState): void {
    this.#complete.set(source, state.complete);
    this.#apply(this.#candidates.set(source, state.pods), state.graceSeconds);
  }

  /** Takes one change of what a source wants. */
  change(source: SourceName, change: SourceChange): void {
    this.#complete.set(source, change.complete);
    this.#apply(this.#candidates.change(source, change));
  }

  #apply(changed: readonly Candidate[], graceSeconds?: SourceState["graceSeconds"]): void {
    // What runs keeps its name, whichever source speaks first.
    const isTakingUp = !this.#peer.startUp.has("sourcesSeen");
    const concerned = isTakingUp ? this.#candidates.all() : this.#candidates.related(changed);
    for (const candidate of changed) this.#losses.delete(candidate);
    const wanted = this.#choose(concerned, isTakingUp);
    // Removals first: a pod that takes over a name must find it free.
    for (const uid of new Set([...changed, ...concerned].map(({ pod }) => pod.metadata.uid))) {
      const [running, candidate] = [this.#running.get(uid), wanted.get(uid)];
      if (running === undefined) continue;
      if (candidate !== undefined && fullName(candidate.pod.metadata) === fullName(running.pod.metadata)) continue;
      this.#running.delete(uid);
      this.#holders.delete(fullName(running.pod.metadata));
      this.#remove(running, graceSeconds?.get(uid));
    }
    const added: Candidate[] = [];
    const updated: Candidate[] = [];
    for (const [uid, candidate] of wanted) {
      const running = this.#running.get(uid);
      if (running === undefined) added.push(candidate);
      else if (running.sourced === candidate.pod) continue;
      else if (running.source !== candidate.source) updated.push(candidate);
      else if (contentOf(running.sourced) !== contentOf(candidate.pod)) updated.push(candidate);
      else this.#keep({ ...running, place: candidate.place, sourced: candidate.pod });
    }
    for (const candidate of added.toSorted((a, b) => byCreation(a.pod, b.pod))) this.#add(candidate);
    for (const candidate of updated) this.#update(candidate);
    this.#rememberFiles(wanted);
    this.#tellContests();
  }

  #keep(running: Running): void {
    this.#running.set(running.pod.metadata.uid, running);
    this.#holders.set(fullName(running.pod.metadata), running);
  }

  /** The winners of names and UIDs, by UID; those whose UID runs from the same source come first, so that they keep their name. */
  #choose(candidates: readonly Candidate[], isTakingUp: boolean): ReadonlyMap<PodUid, Candidate> {
    const runs = ({ pod, source }: Candidate): boolean => {
      const running = this.#running.get(pod.metadata.uid);
      return running?.source === source && fullName(running.pod.metadata) === fullName(pod.metadata);
    };
    const { isListed } = this.#peer;
    const running = candidates.filter(runs);
    // A running pod never loses its UID because of a name conflict: the two would take it from each other in turn.
    const uids = new Set(running.map(({ pod }) => pod.metadata.uid));
    const names = new Map(running.map((candidate) => [fullName(candidate.pod.metadata), candidate]));
    const originals = new Set(candidates.filter(isOriginal).map(({ pod }) => fullName(pod.metadata)));
    const rank = (candidate: Candidate): number => {
      const name = fullName(candidate.pod.metadata);
      if (candidate.source === "file" && !isOriginal(candidate) && originals.has(name)) return 3;
      // A changed manifest has another UID and still belongs to the source that holds the name.
      const holder = this.#holders.get(name);
      const now = names.get(name);
      const isToTake = now === undefined || (now.source === "file" && now.place !== candidate.place);
      const isFirst = candidate.source === "file" && this.#firstFiles.get(name) === candidate.place;
      if (isFirst && isToTake && !uids.has(candidate.pod.metadata.uid)) return -2;
      if (isTakingUp && isListed(candidate.pod.metadata.uid)) return -1;
      if (runs(candidate)) return 0;
      return holder?.source === candidate.source ? 1 : 2;
    };
    const { winners, losses } = chooseAmong(candidates, rank);
    for (const candidate of candidates) {
      const loss = losses.get(candidate);
      if (loss === undefined) {
        this.#losses.delete(candidate);
        continue;
      }
      this.#losses.set(candidate, loss);
      if (!this.#reported.has(contestKey(candidate))) this.#reportLoser(candidate, loss.winner);
    }
    return winners;
  }

  /** A file that had a name first keeps its claim to it as long as any file has a pod of that name. */
  #rememberFiles(wanted: ReadonlyMap<PodUid, Candidate>): void {
    const files = new Set(this.#candidates.of("file").map(({ pod }) => fullName(pod.metadata)));
    for (const name of this.#firstFiles.keys()) if (!files.has(name)) this.#firstFiles.delete(name);
    for (const { pod, source, place } of wanted.values()) {
      const name = fullName(pod.metadata);
      const first = this.#firstFiles.get(name);
      if (source === "file" && (first === undefined || isBackupName(first))) this.#firstFiles.set(name, place);
    }
  }

  /** Records with the running pod that another manifest of its name is ignored. */
  #tellContests(): void {
    const contests = this.#contests();
    const same = (a: Contest | undefined, b: Contest): boolean => a?.uid === b.uid && a.place === b.place;
    const tell = (what: "ManifestWarning" | "ManifestWarningOver", { uid, ignored }: Contest): void => {
      const running = this.#running.get(uid);
      const message = `${ignored} has a pod of the same name and is ignored`;
      if (running) this.#deps.journal.record({ kind: "input", what, message, pod: podRef(running.pod) });
    };
    for (const [key, contest] of this.#reported) {
      const now = contests.get(key);
      if (now === undefined || !same(now, contest)) tell("ManifestWarningOver", contest);
    }
    for (const [key, contest] of contests) {
      if (same(this.#reported.get(key), contest)) continue;
      tell("ManifestWarning", contest);
      const { ignored, place: used } = contest;
      this.#deps.log.warn("two manifests define the same pod; ignoring one", { ignored, used });
    }
    this.#reported = contests;
  }

  #contests(): ReadonlyMap<string, Contest> {
    const contests = [...this.#losses].map(([loser, { winner }]): [string, Contest] => {
      return [contestKey(loser), { uid: winner.pod.metadata.uid, place: winner.place, ignored: loser.place }];
    });
    return new Map(contests);
  }

  #reportLoser(loser: Candidate, winner: Candidate): void {
    const { uid, name } = loser.pod.metadata;
    const what = uid === winner.pod.metadata.uid ? `UID ${uid}` : `name "${name}"`;
    this.#deps.journal.record({
      kind: "decision",
      what: "FailedValidation",
      message: `the pod of ${loser.place} is ignored: ${winner.place} has the same ${what}`,
      // Events must not reveal the paths of manifests.
      data: { eventMessage: `The pod is ignored: ${origins[winner.source]} has the same ${what}` },
      pod: podRef(loser.pod),
      cause: { code: "DuplicateManifest", message: `${winner.place} came first` },
    });
  }

  #add(candidate: Candidate): void {
    const running = runningOf(candidate, formatTime(this.#deps.clock.now()));
    this.#keep(running);
    this.#pass("add", running, {
      what: "PodAdded",
      code: "ManifestAdded",
      message: `pod added: ${candidate.place}`,
    });
  }

  #update(candidate: Candidate): void {
    const seen = this.#running.get(candidate.pod.metadata.uid)?.pod.metadata.annotations?.[Annotation.configSeen];
    const running = runningOf(candidate, seen ?? "");
    this.#keep(running);
    this.#pass("update", running, {
      what: "PodChanged",
      code: "ManifestChanged",
      message: `${candidate.place} changed`,
    });
  }

  #remove(running: Running, graceSeconds: number | undefined): void {
    const message = `pod removed: ${running.place}`;
    this.#pass("remove", running, { what: "PodRemoved", code: "ManifestRemoved", message }, graceSeconds);
  }

  #pass(
    op: PodUpdate["op"],
    { pod, source, place, warnings }: Candidate,
    { what, code, message }: Told,
    graceSeconds?: number,
  ): void {
    const data = { source, place, ...(graceSeconds !== undefined && { graceSeconds }) };
    const entry = this.#deps.journal.record({ kind: "input", what, message, pod: podRef(pod), data });
    for (const warning of op === "remove" ? [] : (warnings ?? [])) {
      this.#deps.journal.record({ kind: "input", what: "ManifestWarning", message: warning, pod: podRef(pod) });
    }
    const cause: Cause = { code, message, entry };
    this.#peer.onUpdate({ op, source, pod, cause, ...(graceSeconds !== undefined && { graceSeconds }) });
  }
}

/** Constant as long as the same manifest defines the same pod. */
function contestKey({ place, pod: { metadata } }: Candidate): string {
  return `${place}\n${fullName(metadata)}\n${metadata.uid}`;
}

function isOriginal({ source, place }: Candidate): boolean {
  return source === "file" && !isBackupName(place);
}

function runningOf(candidate: Candidate, seen: string): Running {
  const { pod, source } = candidate;
  const annotations = {
    ...pod.metadata.annotations,
    [Annotation.configSource]: source,
    [Annotation.configSeen]: seen,
  };
  return { ...candidate, pod: { ...pod, metadata: { ...pod.metadata, annotations } }, sourced: pod };
}

/**
 * What makes a change of a pod: all but the annotations that podwright adds itself. A spec that was changed and changed
 * back has another generation, which the pod's status must tell.
 */
function contentOf(pod: Pod): string {
  const {
    [Annotation.configSource]: _source,
    [Annotation.configSeen]: _seen,
    ...annotations
  } = pod.metadata.annotations ?? {};
  const { generation, labels, deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata;
  const own = { generation, labels, deletionTimestamp, deletionGracePeriodSeconds, annotations };
  return canonicalJson({ spec: pod.spec, ...own });
}
