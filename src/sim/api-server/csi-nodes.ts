import { type Fields, fieldsAt, listAt, Refusal } from "./values.ts";

/**
 * Checks a CSINode: each driver has a node ID, and the entry of one that was listed before is the same, except its count
 * (upstream's ValidateCSINodeUpdate). @throws Refusal (422)
 */
export function checkCsiNode(before: Fields, after: Fields): void {
  const places = new Map(driversOf(before).map((driver) => [driver["name"], placeOf(driver)]));
  for (const driver of driversOf(after)) {
    if (typeof driver["nodeID"] !== "string" || driver["nodeID"] === "") throw invalid("nodeID: Required value");
    const known = places.get(driver["name"]);
    if (known !== undefined && known !== placeOf(driver)) throw invalid("Invalid value: field is immutable");
  }
}

function driversOf(csiNode: Fields): readonly Fields[] {
  return listAt(fieldsAt(csiNode, "spec"), "drivers");
}

function placeOf({ nodeID, topologyKeys }: Fields): string {
  return JSON.stringify([nodeID, topologyKeys ?? []]);
}

function invalid(why: string): Refusal {
  return new Refusal(422, "Invalid", `CSINode is invalid: spec.drivers: ${why}`);
}
