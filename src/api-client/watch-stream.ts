import * as z from "zod";
import { ApiDecodeError, apiErrorOf, parseAnswer } from "./api-error.ts";
import { withoutManagedFields } from "./resource.ts";

/** One event of a watch; the object as it came. */
export type WatchEvent =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: unknown }
  /** Everything up to this version was sent. */
  | { readonly type: "BOOKMARK"; readonly resourceVersion: string; readonly endsInitialEvents: boolean };

const Event = z.looseObject({
  type: z.enum(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]),
  object: z.looseObject({}),
});
const Bookmark = z.looseObject({
  metadata: z.looseObject({
    resourceVersion: z.string(),
    annotations: z.record(z.string(), z.string()).nullish(),
  }),
});

/** Longer than any object that etcd takes. */
const longestLine = 32 * 1024 * 1024;

/** The events of a watch's body. Throws what an ERROR event says, and for what can't be read. */
export async function* watchEvents(what: string, body: AsyncIterable<Uint8Array>): AsyncIterable<WatchEvent> {
  for await (const line of lines(what, body)) if (line.trim() !== "") yield decodeEvent(what, line);
}

function decodeEvent(what: string, line: string): WatchEvent {
  const parsed = Event.safeParse(parseAnswer(what, line));
  if (!parsed.success) throw new ApiDecodeError(`${what}: the API server sent something other than a watch event`);
  const { type, object } = parsed.data;
  if (type === "ERROR") {
    const code = Number(object["code"]);
    throw apiErrorOf(what, { status: Number.isInteger(code) ? code : 500, headers: {} }, { kind: "Status", ...object });
  }
  if (type !== "BOOKMARK") return { type, object: withoutManagedFields(object) };
  const bookmark = Bookmark.safeParse(object);
  if (!bookmark.success) throw new ApiDecodeError(`${what}: the API server sent a bookmark without a resourceVersion`);
  const { resourceVersion, annotations } = bookmark.data.metadata;
  return { type, resourceVersion, endsInitialEvents: annotations?.["k8s.io/initial-events-end"] === "true" };
}

/** Whole lines; what is left at the end is a line that was cut off, and of no use. */
async function* lines(what: string, body: AsyncIterable<Uint8Array>): AsyncIterable<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    const parts = decoder.decode(chunk, { stream: true }).split("\n");
    parts[0] = rest + (parts[0] ?? "");
    rest = parts.pop() ?? "";
    yield* parts;
    if (rest.length > longestLine) throw new ApiDecodeError(`${what}: the API server sent an endless line`);
  }
}
