import { isDeepStrictEqual } from "node:util";
import { withDefaults } from "./defaults.ts";
import { fieldTable } from "./field-table.ts";
import { parseGoDuration } from "../base/go-duration.ts";
import { isJsonMap, valueAt, withValueAt } from "./json.ts";
import { placeIn, type ConfigurationLayer } from "./places.ts";

/** A field that is set although podwright does not honour it. */
export interface UnhonouredField {
  readonly field: string;
  readonly place: string;
  readonly because: string;
}

/**
 * The fields that are set to something that this version does not do. A field counts as set when the layer that decides
 * it gives it a value that is not empty or zero: generated files name every field. Pure.
 * @param layers in the order in which they were laid over one another
 */
export function unhonouredFields(layers: readonly ConfigurationLayer[]): UnhonouredField[] {
  return Object.entries(fieldTable).flatMap(([field, support]) => {
    if (support.kind === "honoured") return [];
    const layer = layers.findLast(({ values }) => valueAt(values, field) !== undefined);
    const value = layer && valueAt(layer.values, field);
    if (layer === undefined || !isSet(field, value)) return [];
    if ((support.unless ?? []).some((accepted) => isDeepStrictEqual(value, accepted))) return [];
    return [{ field, place: placeIn(layer, field.split(".")), because: support.because }];
  });
}

/** Generated files name fields that are not set, with an empty or zero value that means the default. */
function isSet(field: string, value: unknown): boolean {
  if (!isEmpty(value)) return true;
  const fallback = valueAt(withDefaults({}), field);
  const effective = valueAt(withDefaults(withValueAt({}, field, value)), field);
  return fallback !== undefined && value !== null && !isDeepStrictEqual(effective, fallback);
}

/** Empty or zero in all its parts. */
function isEmpty(value: unknown): boolean {
  if (value === null || value === 0) return true;
  if (typeof value === "string") return value === "" || parseGoDuration(value) === 0;
  if (Array.isArray(value)) return value.length === 0;
  return isJsonMap(value) && Object.values(value).every(isEmpty);
}
