-- Health of an OutboxRelay or a Pipeline for Argo CD, which does not read the conditions of kstatus by itself:
--   Stalled=True      Degraded      only a user can repair it
--   Ready=True        Healthy       running, suspended or scaled to zero
--   everything else   Progressing   on its way, or waiting for something that comes by itself
-- Suspended is Healthy and not Suspended: a sync with several waves would wait for ever at a resource that does
-- exactly what it is told.
local health = { status = "Progressing", message = "the operator has not looked at it yet" }

if obj.metadata.deletionTimestamp ~= nil then
  health.message = "it is being deleted"
  return health
end
if obj.status == nil or obj.status.conditions == nil then
  return health
end
if obj.status.observedGeneration ~= nil and obj.status.observedGeneration ~= obj.metadata.generation then
  health.message = "the operator has not looked at this generation yet"
  return health
end

for _, condition in ipairs(obj.status.conditions) do
  if condition.type == "Stalled" and condition.status == "True" then
    return { status = "Degraded", message = condition.reason .. ": " .. condition.message }
  end
end
for _, condition in ipairs(obj.status.conditions) do
  if condition.type == "Ready" then
    if condition.status == "True" then
      health.status = "Healthy"
    end
    health.message = condition.reason .. ": " .. condition.message
  end
end
return health
