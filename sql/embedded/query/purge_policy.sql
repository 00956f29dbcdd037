delete from WF_DEFINITIONS where DEFINITION_NO = cast(? as integer)
