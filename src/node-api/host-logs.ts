import type { ApiResponse } from "../ports/api-server.ts";
import { type DirectoryEntry, FileError, type Files, type OpenedObject } from "../ports/files.ts";
import { plain } from "./answers.ts";
import { ApiError } from "./api-error.ts";

export type LogFiles = Pick<Files, "openWithin">;

const chunkBytes = 64 * 1024;

/**
 * `/logs/…`: the files below a directory of the node. Links are followed only inside it, so that a pod that may write a
 * log cannot expose other files.
 * @param rest the segments after `/logs`, decoded
 * @throws ApiError 404 for missing or outside paths
 */
export async function hostLogs(files: LogFiles, root: string, rest: readonly string[]): Promise<ApiResponse> {
  await using found = await find(files, root, rest);
  if (found.type === "directory") return rest.at(-1) === "" ? listing(await found.list()) : toDirectory(rest);
  if (found.type !== "file") throw notFound();
  return { ...plain(200, ""), contentType: "text/plain; charset=utf-8", body: content(files, root, rest, found.size) };
}

/** The content of a file; undefined when it is missing or outside. */
export async function hostFile(
  files: LogFiles,
  root: string,
  parts: readonly string[],
): Promise<AsyncIterable<Uint8Array> | undefined> {
  try {
    await using found = await find(files, root, parts);
    return found.type === "file" ? content(files, root, parts, found.size) : undefined;
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

async function find(files: LogFiles, root: string, parts: readonly string[]): Promise<OpenedObject> {
  if (parts.some((part) => part === ".." || part.includes("/") || part.includes("\0"))) throw notFound();
  try {
    return await files.openWithin(root, parts.join("/"));
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

function listing(entries: readonly DirectoryEntry[]): ApiResponse {
  const names = entries.map(({ name, type }) => (type === "directory" ? `${name}/` : name)).toSorted();
  const lines = names.map((name) => `<a href="${encodeURIComponent(name).replaceAll("%2F", "/")}">${escape(name)}</a>`);
  return { ...plain(200, ""), contentType: "text/html; charset=utf-8", body: `<pre>\n${lines.join("\n")}\n</pre>\n` };
}

/**
 * Up to its size at the beginning; later additions are for the next request. One opening for all of it, because its path
 * may lead elsewhere meanwhile; only once it is read, so that a response that is not sent leaves nothing open.
 */
async function* content(
  files: LogFiles,
  root: string,
  parts: readonly string[],
  size: number,
): AsyncGenerator<Uint8Array> {
  await using file = await files.openWithin(root, parts.join("/"));
  for (let offset = 0; offset < size;) {
    const chunk = await file.read(offset, Math.min(chunkBytes, size - offset));
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
