update WF_META set VALUE = :VALUE where NAME = :NAME
