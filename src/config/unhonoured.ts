import { isDeepStrictEqual } from "node:util";
import { withDefaults } from "./defaults.ts";
import { fieldTable } from "./field-table.ts";
import { parseGoDuration } from "../base/go-duration.ts";
import { isJsonMap, valueAt, withValueAt } from "./json.ts";
import { placeIn, type ConfigurationLayer } from "./places.ts";

/** A set field that podwright does not honour. */
export interface UnhonouredField {
  readonly field: string;
  readonly place: string;
  readonly because: string;
}

/**
 * The set fields that podwright does not honour. An empty or zero value counts as unset, because generated files
 * contain every field. Pure.
 * @param layers in increasing precedence
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

/** Generated files contain unset fields with an empty or zero value, which means the default. */
function isSet(field: string, value: unknown): boolean {
  if (!isEmpty(value)) return true;
  const fallback = valueAt(withDefaults({}), field);
  const effective = valueAt(withDefaults(withValueAt({}, field, value)), field);
  return fallback !== undefined && value !== null && !isDeepStrictEqual(effective, fallback);
}

/** Recursively empty or zero. */
function isEmpty(value: unknown): boolean {
  if (value === null || value === 0) return true;
  if (typeof value === "string") return value === "" || parseGoDuration(value) === 0;
  if (Array.isArray(value)) return value.length === 0;
  return isJsonMap(value) && Object.values(value).every(isEmpty);
}
