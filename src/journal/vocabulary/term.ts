/**
 * input: a request from outside (manifest, command, signal). observation: a change that the runtime reported. decision:
 * what was decided (also "wait"). action: an effect was requested. outcome: how an action ended (`of` names it). note:
 * about podwright itself (started, adopted, lost the runtime).
 */
export type JournalKind = "input" | "observation" | "decision" | "action" | "outcome" | "note";

/**
 * The Event of an entry at the API server. Placeholders in `words`: `{message}` is the entry's message, `{Message}` the
 * same with a capital, `{refusal}` the message of a rejected pod without its prefix, `{cause}` the message of the
 * nearest cause, `{name}` the entry's name, `{container}` and `{pod}` (`name_namespace(uid)`) its subject; any other is
 * a field of its data, without which there is no Event. A field `eventMessage` in the data replaces the message.
 */
export interface EventTerm {
  readonly type: "Normal" | "Warning";
  /** Default: the entry's name. */
  readonly reason?: string;
  /** Default: `{Message}`. */
  readonly words?: string;
}

/** The definition of an entry name. */
export interface Term {
  /** An action's outcome has the action's name. */
  readonly kind: Exclude<JournalKind, "outcome">;
  /** Event of every entry of the name; for an action, of the request itself. */
  readonly event?: EventTerm;
  /** An additional Event about the node, whatever the subject. */
  readonly nodeEvent?: EventTerm;
  /** An additional Event about the claim in its data (`claim`: namespace, name, uid). */
  readonly claimEvent?: EventTerm;
  /** For an action that is not the first of its kind: its data have an `attempt` above 0. */
  readonly again?: EventTerm;
  /** For an action's outcome, by its result. */
  readonly done?: EventTerm;
  readonly failed?: EventTerm;
  readonly unknown?: EventTerm;
  /** A counter that grows by one with each entry (for an action: with each request). */
  readonly counter?: { readonly name: string; readonly help: string };
  /** Label `code` of kubelet_started_containers_errors_total, for failed container starts. */
  readonly startError?: string;
  /** Set for a reason to reject pods: its label in kubelet_admission_rejections_total. */
  readonly refuses?: "own name" | "Other" | "OutOfExtendedResources";
  /**
   * How `podwright why` treats it. remark, remark over: a lasting remark on a manifest or a volume, not an event.
   * shadow: about a pod that the node never ran. stop: the pod ends by it. tidied: an observation that does not change
   * the container's state. upkeep: repeated for a pod or a node at rest; an answer only when it fails.
   */
  readonly why?: "remark" | "remark over" | "shadow" | "stop" | "tidied" | "upkeep";
  /** As a cause it is only an observation: the preceding action explains it. */
  readonly seen?: true;
  /** Its part of a start-up in `podwright blame`; `{field}` is a field of its data. */
  readonly phase?: { readonly kind: PhaseKind; readonly label: string };
}

/** A fact that causes name without an entry of its own. */
export interface Fact {
  /** The Event of a pod that is stopped for it. */
  readonly end?: EventTerm;
  /**
   * begin: the reason for a first creation in a pod's life. seen: only an observation. tidying: housekeeping, which
   * does not explain a pod's state.
   */
  readonly why?: "begin" | "seen" | "tidying";
}

/**
 * The phases of a start-up. `run`: a container's run to its end. `sidecar`: until a sidecar was ready, for which later
 * containers wait. `gap`: on the critical chain, between two recorded phases.
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
