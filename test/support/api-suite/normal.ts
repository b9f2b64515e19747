import { type Fields, fieldsAt, itemsAt, type Json, textAt } from "../../apiserver/objects.ts";

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const time = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})/g;

function ofText(text: string): string {
  return text
    .replace(/^ey[\w-]+\.[\w-]+\.[\w-]+$/, "<token>")
    .replace(/X509SHA256=[0-9a-f]{64}/, "X509SHA256=<digest>")
    .replaceAll(uuid, "<uid>")
    .replaceAll(time, (_, fraction: string | undefined) => (fraction === undefined ? "<time>" : "<precise time>"))
    .replaceAll(/kube-api-access-\w{5}/g, "kube-api-access-<random>")
    .replace(/^LS0tLS1C[\w+/=]{40,}$/, "<pem>")
    .replace(/^-----BEGIN [^]*$/, "<pem>")
    .replace(/^10\.96\.\d+\.\d+$/, "<service address>")
    .replaceAll(/(resource version: |current: |requestedResourceVersion |\()\d+/g, "$1<revision>");
}

/** Statuses whose texts clients only display: their wording may differ. */
const worded = new Set(["BadRequest", "Invalid", "UnsupportedMediaType", "NotAcceptable"]);

/** The parts of an error that clients evaluate; problems of an object are compared by field, not by wording. */
export function refusal(status: Fields): Fields {
  const { message, ...rest } = status;
  const { causes, ...details } = fieldsAt(status, "details");
  const shown = Array.isArray(causes)
    ? {
        causes: [
          ...new Set(
            itemsAt(status, "details.causes").map((each) => `${textAt(each, "reason")} ${textAt(each, "field")}`),
          ),
        ],
      }
    : {};
  if (worded.has(textAt(status, "reason"))) return { ...rest, details: { ...details, ...shown } };
  return { ...rest, message, details: { ...details, ...shown } };
}

/** Some distributions add a certificate to pods' token volumes. */
function isExtra(source: Json): boolean {
  return textAt(source, "configMap.name").endsWith("-service-ca.crt");
}

/** Absent and empty are equivalent. */
function isEmpty(value: Json): boolean {
  return value === null || (typeof value === "object" && Object.keys(value).length === 0);
}

/** A response without what varies: identities, times, revisions, field managers. */
export function withoutNoise(value: Json): Json {
  if (typeof value === "string") return ofText(value);
  if (Array.isArray(value)) return (value as readonly Json[]).filter((item) => !isExtra(item)).map(withoutNoise);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value as Fields).flatMap(([name, member]): [string, Json][] => {
    if (member === undefined || name === "managedFields") return [];
    if (name === "resourceVersion" && typeof member === "string" && /^\d{1,}$/.test(member)) {
      return [[name, "<revision>"]];
    }
    if (name === "continue" && member !== "") return [[name, "<token>"]];
    const rest = withoutNoise(member);
    return isEmpty(rest) ? [] : [[name, rest]];
  });
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
