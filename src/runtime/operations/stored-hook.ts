import type { ContainerPort } from "../../api/container.ts";
import type { LifecycleHandler } from "./hooks.ts";
import { Annotation } from "../config/labels.ts";

/** A container's preStop hook and what it needs of the spec. */
export interface StoredHook {
  readonly preStop: LifecycleHandler | undefined;
  readonly ports: readonly ContainerPort[];
}

/**
 * The preStop hook from the container's own annotations, for containers of unknown pods. Anything not written as a
 * kubelet does counts as no hook: annotations come from the runtime and are not validated.
 */
export function storedHook(annotations: Readonly<Record<string, string>>): StoredHook {
  const preStop = handlerOf(parse(annotations[Annotation.preStopHandler]));
  const ports = parse(annotations[Annotation.ports]);
  return { preStop, ports: Array.isArray(ports) ? ports.filter(isPort) : [] };
}

type Fields = Readonly<Record<string, unknown>>;

function parse(json: string | undefined): unknown {
  if (json === undefined) return undefined;
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function handlerOf(value: unknown): LifecycleHandler | undefined {
  if (!isFields(value)) return undefined;
  const { exec, httpGet, sleep } = value;
  if (isFields(exec)) {
    return isTexts(exec["command"]) ? { exec: { command: exec["command"] } } : undefined;
  }
  if (isFields(sleep)) {
    return typeof sleep["seconds"] === "number" ? { sleep: { seconds: sleep["seconds"] } } : undefined;
  }
  return isFields(httpGet) ? httpGetOf(httpGet) : undefined;
}

function httpGetOf({ path, port, host, scheme, httpHeaders }: Fields): LifecycleHandler | undefined {
  if (typeof port !== "number" && typeof port !== "string") return undefined;
  return {
    httpGet: {
      port,
      ...(typeof path === "string" && { path }),
      ...(typeof host === "string" && { host }),
      ...(typeof scheme === "string" && { scheme }),
      ...(Array.isArray(httpHeaders) && { httpHeaders: httpHeaders.filter(isHeader) }),
    },
  };
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function isHeader(value: unknown): value is { name: string; value: string } {
  return isFields(value) && typeof value["name"] === "string" && typeof value["value"] === "string";
}

function isPort(value: unknown): value is ContainerPort {
  return isFields(value) && typeof value["containerPort"] === "number";
}
