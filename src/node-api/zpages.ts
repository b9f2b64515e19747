import { stringify } from "yaml";
import type { ApiResponse } from "../ports/api-server.ts";
import type { NodeRequest } from "../ports/node-server.ts";
import { plain } from "./answers.ts";
import { ApiError } from "./api-error.ts";

/** A page as text for people and as an object for programs: `/statusz`, `/flagz` (KEP-4827, KEP-4828). */
export interface ZPage {
  /** `statusz`, `flagz` */
  readonly name: string;
  /** The object's kind in config.k8s.io: `Statusz`, `Flagz`. */
  readonly kind: string;
  /** Fields of the object, besides its kind and name. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Lines for people. */
  readonly lines: readonly string[];
}

const component = "kubelet";
const group = "config.k8s.io";
const versions = new Set(["v1alpha1", "v1beta1"]);
const deprecated = "v1alpha1";
const header =
  "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees " +
  "and is for debugging purposes only.";

/**
 * Text, unless the client requests the object: `Accept: application/json;as=Statusz;v=v1beta1;g=config.k8s.io`, or
 * `application/yaml`.
 * @throws ApiError 406 when the client accepts nothing that is served
 */
export function zPage(page: ZPage, { headers }: NodeRequest): ApiResponse {
  const accepted = (headers["accept"] ?? "").trim();
  if (accepted === "") return text(page);
  for (const each of accepted.split(",")) {
    const [type = "", ...parameters] = each.split(";").map((part) => part.trim().toLowerCase());
    const values = new Map(parameters.map((parameter) => parameter.split("=", 2) as [string, string | undefined]));
    if (values.get("q") === "0") continue;
    const kind = values.get("as");
    if (kind === undefined && ["text/plain", "text/*", "*/*"].includes(type)) return text(page);
    const version = values.get("v") ?? "";
    if (kind !== page.kind.toLowerCase() || values.get("g") !== group || !versions.has(version)) continue;
    if (type === "application/json" || type === "application/yaml") return structured(page, type, version);
  }
  const wanted = `as=${page.kind};v=v1beta1;g=${group}`;
  throw new ApiError(
    406,
    "only the following media types are accepted: text/plain, " +
      `application/json;${wanted}, application/yaml;${wanted}\n`,
  );
}

function text({ name, lines }: ZPage): ApiResponse {
  return plain(200, `\n${component} ${name}\n${header}\n\n${lines.map((line) => `${line}\n`).join("")}`);
}

function structured({ name, kind, fields }: ZPage, contentType: string, version: string): ApiResponse {
  const object = { kind, apiVersion: `${group}/${version}`, metadata: { name: component }, ...fields };
  const body = contentType === "application/json" ? `${JSON.stringify(object)}\n` : stringify(object);
  const warning = `299 - "This version of the ${name} endpoint is deprecated. Please use a newer version."`;
  return { status: 200, contentType, ...(version === deprecated && { headers: { Warning: warning } }), body };
}

export interface NodeStatus {
  /** Wall clock ms. */
  readonly startedMs: number;
  readonly nowMs: number;
  readonly version: string;
  readonly paths: readonly string[];
}

export function statusz({ startedMs, nowMs, version, paths }: NodeStatus, request: NodeRequest): ApiResponse {
  const uptimeSeconds = Math.max(0, Math.floor((nowMs - startedMs) / 1000));
  const startTime = `${new Date(startedMs).toISOString().slice(0, 19)}Z`;
  const two = (value: number): string => String(value).padStart(2, "0");
  const [hours, minutes] = [Math.floor(uptimeSeconds / 3600), Math.floor(uptimeSeconds / 60) % 60];
  const sorted = paths.toSorted();
  const page = {
    name: "statusz",
    kind: "Statusz",
    fields: { startTime, uptimeSeconds, goVersion: "", binaryVersion: version, paths: sorted },
    lines: [
      `Started: ${startTime}`,
      `Up: ${hours} hr ${two(minutes)} min ${two(uptimeSeconds % 60)} sec`,
      `Binary version: ${version}`,
      `Paths: ${sorted.join(" ")}`,
    ],
  };
  return zPage(page, request);
}

/** @param flags values by name, without secrets */
export function flagz(flags: ReadonlyMap<string, string>, request: NodeRequest): ApiResponse {
  const sorted = [...flags].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const lines = sorted.map(([name, value]) => `${name}=${value}`);
  return zPage({ name: "flagz", kind: "Flagz", fields: { flags: Object.fromEntries(sorted) }, lines }, request);
}
