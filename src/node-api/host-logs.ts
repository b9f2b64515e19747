import type { ApiResponse } from "../ports/api-server.ts";
import { FileError, type Files } from "../ports/files.ts";
import { plain } from "./answers.ts";
import { ApiError } from "./api-error.ts";

export type LogFiles = Pick<Files, "realPath" | "stat" | "list" | "readRange">;

const chunkBytes = 64 * 1024;

/**
 * `/logs/…`: the files below a directory of the node. Links are followed only inside it, so that a pod that may write a
 * log cannot expose other files.
 * @param rest the segments after `/logs`, decoded
 * @throws ApiError 404 for missing or outside paths
 */
export async function hostLogs(files: LogFiles, root: string, rest: readonly string[]): Promise<ApiResponse> {
  const path = await resolve(files, root, rest);
  const info = await files.stat(path);
  if (info?.type === "directory") return rest.at(-1) === "" ? await listing(files, path) : toDirectory(rest);
  if (info?.type !== "file") throw notFound();
  return { ...plain(200, ""), contentType: "text/plain; charset=utf-8", body: content(files, path, info.size) };
}

/** The content of a file; undefined when it is missing or outside. */
export async function hostFile(
  files: LogFiles,
  root: string,
  parts: readonly string[],
): Promise<AsyncIterable<Uint8Array> | undefined> {
  try {
    const path = await resolve(files, root, parts);
    const info = await files.stat(path);
    return info?.type === "file" ? content(files, path, info.size) : undefined;
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

async function resolve(files: LogFiles, root: string, given: readonly string[]): Promise<string> {
  const parts = given.filter((part) => part !== "");
  if (parts.some((part) => part === ".." || part.includes("/") || part.includes("\0"))) throw notFound();
  try {
    const base = await files.realPath(root);
    const path = await files.realPath([root, ...parts].join("/"));
    if (path === base || path.startsWith(`${base}/`)) return path;
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
  }
  throw notFound();
}

/** Links in the listing are relative: without a trailing slash in the path they would be wrong. */
function toDirectory(rest: readonly string[]): ApiResponse {
  const location = `${encodeURIComponent(rest.at(-1) ?? "logs")}/`;
  return plain(301, "", { Location: location });
}

async function listing(files: LogFiles, path: string): Promise<ApiResponse> {
  const names = (await files.list(path)).map(({ name, type }) => (type === "directory" ? `${name}/` : name)).toSorted();
  const lines = names.map((name) => `<a href="${encodeURIComponent(name).replaceAll("%2F", "/")}">${escape(name)}</a>`);
  return { ...plain(200, ""), contentType: "text/html; charset=utf-8", body: `<pre>\n${lines.join("\n")}\n</pre>\n` };
}

/** Up to its size at the beginning; later additions are for the next request. */
async function* content(files: LogFiles, path: string, size: number): AsyncGenerator<Uint8Array> {
  for (let offset = 0; offset < size;) {
    const chunk = await files.readRange(path, offset, Math.min(chunkBytes, size - offset), { noFollow: true });
    if (chunk.length === 0) return;
    offset += chunk.length;
    yield chunk;
  }
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&#34;");
}

function notFound(): ApiError {
  return new ApiError(404, "404 page not found\n");
}
