import type { ServiceImpl } from "@connectrpc/connect";
import type { Pod } from "../api/pod.ts";
import type { PodStatus } from "../api/status.ts";
import type { PodRef } from "../journal/entry.ts";
import { EventType, type Pods } from "../ports/gen/pods/v1alpha1/api_pb.js";
import { RpcError } from "../ports/rpc.ts";
import { podBytes } from "./pod-bytes.ts";

/** A pod with the latest of its statuses. */
export interface ServedPod {
  readonly pod: Pod;
  /** Undefined before the first observation of the pod. */
  readonly status: PodStatus | undefined;
}

export type PodNews =
  | { readonly type: "added" | "modified"; readonly pod: ServedPod }
  | { readonly type: "deleted"; readonly ref: PodRef };

export interface PodsSource {
  readonly pods: () => readonly ServedPod[];
  /** Calls back with each change until it is disposed of. */
  readonly watch: (listener: (news: PodNews) => void) => Disposable;
  /** A watcher was dropped as it did not keep up. */
  readonly dropped?: () => void;
}

/** Maximum number of unread changes of a watcher; beyond it is disconnected, and has to start again. */
const maxUnread = 100;

interface WatchEvent {
  readonly type: EventType;
  readonly pod: Uint8Array;
}

/** The pods API (`pods-api/pods-api.sock`, gate PodsAPI): pods with their statuses, without the API server. */
export function podsService(source: PodsSource): ServiceImpl<typeof Pods> {
  return {
    listPods: () => ({ pods: sorted(source).map(bytesOf) }),
    getPod: ({ podUID }) => {
      const found = source.pods().find(({ pod }) => pod.metadata.uid === podUID);
      if (found === undefined) throw new RpcError("NotFound", `pod with UID ${podUID} not found`);
      return { pod: bytesOf(found) };
    },
    watchPods: (_request, { signal }) => watched(source, signal),
  };
}

async function* watched(source: PodsSource, signal: AbortSignal): AsyncGenerator<WatchEvent> {
  let unread: PodNews[] = [];
  let isDropped = false;
  let wake = Promise.withResolvers<void>();
  using _watch = source.watch((news) => {
    if (unread.length < maxUnread) unread.push(news);
    else if (!isDropped) {
      isDropped = true;
      source.dropped?.();
    }
    wake.resolve();
  });
  const onAbort = (): void => wake.resolve();
  signal.addEventListener("abort", onAbort);
  // Registered before the pods are listed: a change between the two is sent twice rather than never.
  for (const served of sorted(source)) yield { type: EventType.ADDED, pod: bytesOf(served) };
  yield { type: EventType.INITIAL_SYNC_COMPLETE, pod: new Uint8Array() };
  while (!signal.aborted) {
    await wake.promise;
    wake = Promise.withResolvers<void>();
    const news = unread;
    unread = [];
    for (const each of news) yield eventOf(each);
    if (isDropped) throw new RpcError("ResourceExhausted", "watch client channel closed");
  }
  signal.removeEventListener("abort", onAbort);
}

function eventOf(news: PodNews): WatchEvent {
  if (news.type === "deleted") return { type: EventType.DELETED, pod: podBytes({ metadata: news.ref }) };
  return { type: news.type === "added" ? EventType.ADDED : EventType.MODIFIED, pod: bytesOf(news.pod) };
}

function sorted(source: PodsSource): ServedPod[] {
  return source.pods().toSorted((a, b) => (a.pod.metadata.uid < b.pod.metadata.uid ? -1 : 1));
}

function bytesOf({ pod: { metadata, spec }, status }: ServedPod): Uint8Array {
  return podBytes({ metadata, spec, status: status ?? {} });
}
