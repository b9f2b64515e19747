import { quote, type FieldPath } from "../yaml/manifest-error.ts";
import type { FieldHint } from "../sources/schema-errors.ts";
import { configurationFlags } from "./flag-table.ts";
import { nodeFlags } from "./node-flag-table.ts";
import { removedFlag } from "./removed-flags.ts";

/** The hint for an unknown field of KubeletConfiguration that has the name of a present or removed flag. */
export function fieldHint(path: FieldPath, field: string): ReturnType<FieldHint> {
  if (path.length > 0) return undefined;
  const flag = field.replaceAll(/([a-z\d])([A-Z])/gu, "$1-$2").toLowerCase();
  const sets = configurationFlags.get(flag)?.field;
  if (sets?.toLowerCase() === field.toLowerCase()) return undefined;
  if (sets !== undefined) return { hint: `the field is ${quote(sets)}`, meant: sets };
  if (Object.hasOwn(nodeFlags, flag)) return { hint: `only the flag --${flag} sets it` };
  const removed = removedFlag(flag);
  return removed === undefined ? undefined : { hint: `the flag --${flag} was ${removed}` };
}
