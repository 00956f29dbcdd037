select INSTANCE_ID from WF_INSTANCES
where START_KEY = ? and coalesce(BUSINESS_KEY, '') = ? and coalesce(DEFINITION, '') = ?
