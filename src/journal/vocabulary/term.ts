/**
 * input: a request from outside (manifest, command, signal). observation: a change that the runtime showed. decision:
 * what was decided (also "wait"). action: an effect was requested. outcome: how an action ended (`of` names it). note:
 * about podwright itself (started, adopted, lost the runtime).
 */
export type JournalKind = "input" | "observation" | "decision" | "action" | "outcome" | "note";

/**
 * The Event that an entry is at the API server. In `words` stand `{message}` for the entry's message, `{Message}` for the
 * same with a capital, `{refusal}` for the message of a refused pod without its prefix, `{cause}` for the message of the
 * nearest cause, `{name}` for the entry's name, `{container}` and `{pod}` (`name_namespace(uid)`) for whom it is about, and
 * any other word in braces for a field of its data; without that field there is no Event. Where the data have an
 * `eventMessage`, it takes the message's place.
 */
export interface EventTerm {
  readonly type: "Normal" | "Warning";
  /** Default: the entry's name. */
  readonly reason?: string;
  /** Default: `{Message}`. */
  readonly words?: string;
}

/** A name of entries, and all that hangs on it. */
export interface Term {
  /** An action's outcome has the action's name. */
  readonly kind: Exclude<JournalKind, "outcome">;
  /** Of every entry of the name; of an action, of the request itself. */
  readonly event?: EventTerm;
  /** The additional Event of the node, whatever the entry is about. */
  readonly nodeEvent?: EventTerm;
  /** Of an action that is not the first of its kind: whose data say an `attempt` above 0. */
  readonly again?: EventTerm;
  /** Of an action's outcome, by its result. */
  readonly done?: EventTerm;
  readonly failed?: EventTerm;
  readonly unknown?: EventTerm;
  /** A plain counter that grows by one with each entry (of an action: with each request). */
  readonly counter?: { readonly name: string; readonly help: string };
  /** Of a container that does not start for it: label `code` of kubelet_started_containers_errors_total. */
  readonly startError?: string;
  /** A reason for which pods are refused, and its label in kubelet_admission_rejections_total. */
  readonly refuses?: "own name" | "Other" | "OutOfExtendedResources";
  /**
   * What `podwright why` makes of it. remark, remark over: lasting words on a manifest or a volume, not what happened.
   * shadow: about a pod that the node never took up. stop: the pod comes to its end by it. tidied: seen of a container
   * without changing what it is. upkeep: done again and again for a pod at rest; an answer only when it fails.
   */
  readonly why?: "remark" | "remark over" | "shadow" | "stop" | "tidied" | "upkeep";
  /** As a cause it is only an observation: the action before explains it. */
  readonly seen?: true;
  /** Its part of a start-up in `podwright blame`; `{field}` stands for a field of its data. */
  readonly phase?: { readonly kind: PhaseKind; readonly label: string };
}

/** A fact that causes name and that is no entry of its own. */
export interface Fact {
  /** The Event of a pod that is stopped for it. */
  readonly end?: EventTerm;
  /**
   * begin: why something is created for the first time in a pod's life. seen: only an observation. tidying:
   * housekeeping, and no explanation of a pod's state.
   */
  readonly why?: "begin" | "seen" | "tidying";
}

/**
 * The phases of a start-up. `run`: a container's run to its end. `sidecar`: until one was ready, for which the
 * containers after it wait. `gap`: on the critical chain, between two recorded phases.
 */
export type PhaseKind =
  | "wait"
  | "volume"
  | "sandbox"
  | "image"
  | "create"
  | "start"
  | "hook"
  | "run"
  | "sidecar"
  | "ready"
  | "other"
  | "gap";

export type Terms = Readonly<Record<string, Term>>;
export type Facts = Readonly<Record<string, Fact>>;

export const normal = { type: "Normal" } as const satisfies EventTerm;
export const warning = { type: "Warning" } as const satisfies EventTerm;
