import type { JournalEntry, PodRef } from "../journal/entry.ts";
import { factOf, termOf } from "../journal/vocabulary.ts";
import { imageEvents } from "../journal/vocabulary/images.ts";
import type { EventTerm } from "../journal/vocabulary/term.ts";
import { rejected } from "../pods/rejection.ts";

/** A PersistentVolumeClaim that an Event is about. */
export interface ClaimRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** The Event of a journal entry. */
export interface NodeEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
  /** Undefined: about the claim, or the node. */
  readonly pod: PodRef | undefined;
  readonly claim?: ClaimRef | undefined;
  /** Name of the container it is about. */
  readonly container: string | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

type Told = Pick<NodeEvent, "type" | "reason" | "message">;

/**
 * The Events of an entry at the API server, with upstream's reasons and texts, by the vocabulary. A missing image
 * yields two, as upstream: the image manager's, and the container's. That of a volume's image is about the pod, and the
 * container that waits for it has an entry of its own. Pure.
 */
export function eventsOf(entry: JournalEntry): readonly NodeEvent[] {
  const { pod } = entry;
  const ofNode = told(termOf(entry.what).nodeEvent, entry);
  const ofImage = imageEvent(entry);
  const isVolumes = ofImage !== undefined && entry.data?.["volume"] !== undefined;
  const container = isVolumes ? undefined : entry.container;
  const ofEntry = isVolumes ? [] : eventTerms(entry).map((term) => told(term, entry));
  const events: NodeEvent[] = [ofImage, ...ofEntry].flatMap((event) =>
    event === undefined ? [] : [{ ...event, pod, container, ...annotationsOf(entry) }],
  );
  const ofClaim = claimEvent(entry);
  if (ofClaim !== undefined) events.push(ofClaim);
  return ofNode === undefined ? events : [{ ...ofNode, pod: undefined, container: undefined }, ...events];
}

function claimEvent(entry: JournalEntry): NodeEvent | undefined {
  const event = told(termOf(entry.what).claimEvent, entry);
  const claim = entry.data?.["claim"];
  if (event === undefined || typeof claim !== "object" || claim === null) return undefined;
  const field = (name: string): string => {
    const value: unknown = Reflect.get(claim, name);
    return typeof value === "string" ? value : "";
  };
  const of = { namespace: field("namespace"), name: field("name"), uid: field("uid") };
  return { ...event, pod: undefined, claim: of, container: undefined };
}

function annotationsOf({ data }: JournalEntry): Pick<NodeEvent, "annotations"> {
  const annotations = data?.["annotations"];
  if (typeof annotations !== "object" || annotations === null || Array.isArray(annotations)) return {};
  const pairs = Object.entries(annotations).filter((pair): pair is [string, string] => typeof pair[1] === "string");
  return { annotations: Object.fromEntries(pairs) };
}

function imageEvent({ data, message }: JournalEntry): Told | undefined {
  const reason = data?.["event"];
  if (typeof reason !== "string" || !isImageEvent(reason)) return undefined;
  return { type: imageEvents[reason], reason, message: capitalised(message) };
}

function isImageEvent(reason: string): reason is keyof typeof imageEvents {
  return Object.hasOwn(imageEvents, reason);
}

function eventTerms({ kind, what, result, cause, data }: JournalEntry): readonly (EventTerm | undefined)[] {
  const term = termOf(what);
  if (kind === "outcome") return [result && term[result]];
  const again = typeof data?.["attempt"] === "number" && data["attempt"] > 0 ? term.again : undefined;
  const end = what === "PodTerminating" && cause !== undefined ? factOf(cause.code)?.end : undefined;
  return [term.event, again, end];
}

function told(term: EventTerm | undefined, entry: JournalEntry): Told | undefined {
  if (term === undefined) return undefined;
  const message = filled(term.words ?? "{Message}", entry);
  return message === undefined ? undefined : { type: term.type, reason: term.reason ?? entry.what, message };
}

/** Fills in the placeholders; undefined: the entry lacks one. */
function filled(words: string, entry: JournalEntry): string | undefined {
  let isWhole = true;
  const text = words.replaceAll(/\{(\w+)\}/gu, (_, name: string) => {
    const value = valueOf(name, entry);
    isWhole &&= value !== undefined;
    return value ?? "";
  });
  return isWhole ? text : undefined;
}

function valueOf(name: string, { message, what, cause, pod, container, data }: JournalEntry): string | undefined {
  const field = (key: string): string | undefined => (typeof data?.[key] === "string" ? data[key] : undefined);
  switch (name) {
    case "message":
      return field("eventMessage") ?? message;
    case "Message":
      return field("eventMessage") ?? capitalised(message);
    case "refusal":
      return message.startsWith(rejected) ? message.slice(rejected.length) : message;
    case "name":
      return what;
    case "cause":
      return cause?.message ?? "";
    case "container":
      return container ?? "";
    case "pod":
      return pod && `${pod.name}_${pod.namespace}(${pod.uid})`;
    default:
      return field(name);
  }
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
