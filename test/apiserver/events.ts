import { type ApiObject, type Draft, draftOf, type Fields, type Json } from "./objects.ts";
import type { Resource } from "./resource.ts";

/** Names of core Event's members in `events.k8s.io/v1`. */
const newNames: readonly (readonly [core: string, renamed: string])[] = [
  ["involvedObject", "regarding"],
  ["message", "note"],
  ["source", "deprecatedSource"],
  ["firstTimestamp", "deprecatedFirstTimestamp"],
  ["lastTimestamp", "deprecatedLastTimestamp"],
  ["count", "deprecatedCount"],
  ["reportingComponent", "reportingController"],
];

function rename(object: Fields, names: readonly (readonly [string, string])[]): Draft {
  const renamed = draftOf(object);
  for (const [from, to] of names) {
    const value: Json | undefined = renamed[from];
    delete renamed[from];
    if (value !== undefined) renamed[to] = value;
  }
  return renamed;
}

/** Events are stored in the core form. */
export const eventConversion: NonNullable<Resource["conversion"]> = {
  fromStored: (object) => ({ ...(rename(object, newNames) as ApiObject), apiVersion: "events.k8s.io/v1" }),
  toStored: (given) => ({
    ...rename(
      given,
      newNames.map(([core, renamed]) => [renamed, core] as const),
    ),
    apiVersion: "v1",
  }),
};
