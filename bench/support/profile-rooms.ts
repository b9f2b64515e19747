import type { HeapProfiler, Profiler, Runtime } from "node:inspector";

/** Where a function of a profile stands in the sources: `src/csi/client.ts`; undefined: in Node.js or V8. */
export type SourceOf = (frame: Runtime.CallFrame) => string | undefined;

/** What each room used, in the profile's unit, by room. */
export type ByRoom = ReadonlyMap<string, number>;

/**
 * CPU time in ms, by room. Time in Node.js belongs to the room that called it, and to `Node.js` where it was called by
 * no room, as from its event loop.
 */
export function cpuByRoom({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile, sourceOf: SourceOf): ByRoom {
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const rooms = new Map<number, string>();
  const roomOf = (id: number): string => {
    const known = rooms.get(id);
    if (known !== undefined) return known;
    const node = byId.get(id);
    const parent = parents.get(id);
    const own = node && ownRoom(node.callFrame, sourceOf);
    const room = own ?? (parent === undefined ? outside : roomOf(parent));
    rooms.set(id, room);
    return room;
  };
  const found = new Map<string, number>();
  for (const [index, id] of samples.entries()) {
    if (byId.get(id)?.callFrame.functionName === "(idle)") continue;
    add(found, roomOf(id), (timeDeltas[index] ?? 0) / 1000);
  }
  return found;
}

/** Allocated bytes, collected ones included, by room; attributed as {@link cpuByRoom} does. */
export function bytesByRoom({ head }: HeapProfiler.SamplingHeapProfile, sourceOf: SourceOf): ByRoom {
  const found = new Map<string, number>();
  const visit = (node: HeapProfiler.SamplingHeapProfileNode, above: string): void => {
    const room = ownRoom(node.callFrame, sourceOf) ?? above;
    add(found, room, node.selfSize);
    for (const child of node.children) visit(child, room);
  };
  visit(head, outside);
  return found;
}

const outside = "Node.js";

/** `src/csi`, a package's name, or V8's own work. */
function ownRoom(frame: Runtime.CallFrame, sourceOf: SourceOf): string | undefined {
  if (frame.functionName === "(garbage collector)") return "garbage collection";
  if (frame.functionName === "(program)") return "native code";
  const source = sourceOf(frame);
  if (source === undefined) return undefined;
  const packaged = /node_modules\/((?:@[^/]+\/)?[^/]+)/u.exec(source);
  if (packaged?.[1] !== undefined) return packaged[1];
  return /src\/[^/]+/u.exec(source)?.[0];
}

function add(to: Map<string, number>, key: string, value: number): void {
  to.set(key, (to.get(key) ?? 0) + value);
}
