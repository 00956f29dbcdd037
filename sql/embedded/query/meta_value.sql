select VALUE from WF_META where NAME = ?
