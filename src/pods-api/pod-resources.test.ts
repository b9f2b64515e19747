import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { podWith } from "../../test/support/pods.ts";
import {
  AllocatableResourcesRequestSchema,
  GetPodResourcesRequestSchema,
  ListPodResourcesRequestSchema,
} from "../ports/gen/podresources/v1/api_pb.js";
import { ListPodResourcesRequestSchema as ListPodResourcesRequestAlphaSchema } from "../ports/gen/podresources/v1alpha1/api_pb.js";
import { podResources, podResourcesAlpha } from "./pod-resources.ts";

/** What was called, and what failed. */
function observer() {
  const told: string[] = [];
  return {
    told,
    called: (version: string, method: string) => void told.push(`${version} ${method}`),
    failed: (version: string, method: string) => void told.push(`${version} ${method} failed`),
  };
}

const nothing: Partial<HandlerContext> = {};
const context = nothing as HandlerContext;

test("ended pods are listed only on request, and Get never returns them", async () => {
  const pods = ["runs", "done"].map((name) => {
    return { pod: podWith({ containers: [{ name: "c" }] }, { name, uid: name }), ended: name === "done" };
  });
  const names = async (listsEnded: boolean): Promise<(string | undefined)[]> => {
    const service = podResources(() => pods, listsEnded, observer());
    return (
      (await service.list(create(ListPodResourcesRequestSchema), context)).podResources?.map(({ name }) => name) ?? []
    );
  };
  assert.deepEqual(await names(false), ["runs"]);
  assert.deepEqual(await names(true), ["runs", "done"]);
  const get = async (podName: string): Promise<unknown> => {
    return await podResources(() => pods, true, observer()).get(
      create(GetPodResourcesRequestSchema, { podName, podNamespace: "ns" }),
      context,
    );
  };
  await get("runs");
  await assert.rejects(get("done"), /^RpcError: pod done in namespace ns not found$/);
});

test("calls are counted by their method, and those for an unknown pod as failed", async () => {
  const { told, ...counts } = observer();
  const service = podResources(() => [], false, counts);
  await service.list(create(ListPodResourcesRequestSchema), context);
  await service.getAllocatableResources(create(AllocatableResourcesRequestSchema), context);
  const get = async (): Promise<unknown> => await service.get(create(GetPodResourcesRequestSchema), context);
  await assert.rejects(get());
  await podResourcesAlpha(() => [], counts).list(create(ListPodResourcesRequestAlphaSchema), context);
  assert.deepEqual(told, ["v1 list", "v1 get_allocatable", "v1 get", "v1 get failed", "v1alpha1 list"]);
});
